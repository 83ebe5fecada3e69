// A member of a consumer group; see group_consumer.py. Arguments: bootstrap, topic, group.
'use strict'

const { Kafka, logLevel } = require('kafkajs')

const [bootstrap, topic, groupId] = process.argv.slice(2)
const kafka = new Kafka({ brokers: [bootstrap], logLevel: logLevel.ERROR })
const consumer = kafka.consumer({
  groupId,
  sessionTimeout: 6000,
  heartbeatInterval: 300,
  maxWaitTimeInMs: 200,
})

consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
  const partitions = [...(payload.memberAssignment[topic] || [])].sort((a, b) => a - b)
  console.log(`A ${partitions.join(',')}`)
})

const main = async () => {
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  await consumer.run({
    eachMessage: async ({ partition, message }) => {
      console.log(`R ${partition} ${message.offset}`)
    },
  })
}

process.stdin.on('end', async () => {
  await consumer.disconnect()
  process.exit(0)
})
process.stdin.resume()
main().catch(error => {
  console.error(error)
  process.exit(1)
})
