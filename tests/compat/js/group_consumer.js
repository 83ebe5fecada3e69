// Members of consumer groups; see group_consumer.py. Argument: bootstrap.
'use strict'

const readline = require('readline')
const { Kafka, logLevel } = require('kafkajs')

const [bootstrap] = process.argv.slice(2)
const kafka = new Kafka({ brokers: [bootstrap], logLevel: logLevel.ERROR })
const members = new Map()

const join = async (name, topic, groupId) => {
  const consumer = kafka.consumer({
    groupId,
    sessionTimeout: 6000,
    heartbeatInterval: 300,
    maxWaitTimeInMs: 200,
  })
  members.set(name, consumer)
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    const partitions = [...(payload.memberAssignment[topic] || [])].sort((a, b) => a - b)
    console.log(`${name} A ${partitions.join(',')}`)
  })
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  await consumer.run({
    eachMessage: async ({ partition, message }) => {
      console.log(`${name} R ${partition} ${message.offset}`)
    },
  })
}

const leave = async name => {
  await members.get(name).disconnect()
  members.delete(name)
  console.log(`${name} L`)
}

const fail = error => {
  console.error(error)
  process.exit(1)
}

const commands = readline.createInterface({ input: process.stdin })
commands.on('line', line => {
  const [command, name, ...rest] = line.split(' ')
  const done = command === 'join' ? join(name, ...rest) : leave(name)
  done.catch(fail)
})
commands.on('close', () => {
  Promise.all([...members.keys()].map(leave)).then(() => process.exit(0), fail)
})
