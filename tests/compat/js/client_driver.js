// kafkajs behind one JSON request and answer per line; see json_driver.py. Argument: bootstrap.
'use strict'

const readline = require('readline')
const {
  CompressionCodecs,
  CompressionTypes,
  ConfigResourceTypes,
  Kafka,
  logLevel,
} = require('kafkajs')
// Without a group kafkajs reads only through its cluster; its public consumer always joins one.
const Cluster = require('kafkajs/src/cluster')
const { createLogger, LEVELS } = require('kafkajs/src/loggers')
const LoggerConsole = require('kafkajs/src/loggers/console')
const socketFactory = require('kafkajs/src/network/socketFactory')
const snappy = require('kafkajs-snappy')
const lz4 = require('lz4-napi')
const { ZstdCodec } = require('zstd-codec')

const READ_TIMEOUT_MS = 20000
const CODECS = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD,
}

const codec = (compress, decompress) => () => ({
  compress: async encoder => Buffer.from(await compress(encoder.buffer)),
  decompress: async buffer => Buffer.from(await decompress(buffer)),
})

CompressionCodecs[CompressionTypes.Snappy] = snappy
CompressionCodecs[CompressionTypes.LZ4] = codec(lz4.compressFrame, lz4.decompressFrame)

const [bootstrap] = process.argv.slice(2)
const kafka = new Kafka({ brokers: [bootstrap], logLevel: logLevel.ERROR })
const admin = kafka.admin()

const decoded = text => (text === null ? null : Buffer.from(text, 'base64'))
const encoded = bytes => (bytes === null ? null : Buffer.from(bytes).toString('base64'))

// kafkajs takes headers as an object, a repeated name as an array.
const headersObject = pairs => {
  const headers = {}
  for (const [name, text] of pairs) {
    const value = decoded(text)
    headers[name] = name in headers ? [headers[name], value].flat() : value
  }
  return headers
}

const headerPairs = headers =>
  Object.entries(headers).flatMap(([name, values]) =>
    [values].flat().map(value => [name, encoded(value)])
  )

const connectedCluster = async () => {
  const cluster = new Cluster({
    logger: createLogger({ level: LEVELS.ERROR, logCreator: LoggerConsole }),
    socketFactory: socketFactory(),
    brokers: [bootstrap],
    clientId: 'kafkajs-cluster',
    connectionTimeout: 5000,
    metadataMaxAge: 60000,
    isolationLevel: 0,
  })
  await cluster.connect()
  return cluster
}

const operations = {
  async produce({ topic, messages, codec, acks, idempotent }) {
    const producer = kafka.producer({ idempotent, maxInFlightRequests: idempotent ? 1 : null })
    await producer.connect()
    try {
      await producer.send({
        topic,
        acks: acks === 'all' ? -1 : Number(acks),
        compression: CODECS[codec],
        messages: messages.map(message => ({
          key: decoded(message.key),
          value: decoded(message.value),
          headers: headersObject(message.headers),
          partition: message.partition,
          ...(message.timestamp === null ? {} : { timestamp: String(message.timestamp) }),
        })),
      })
    } finally {
      await producer.disconnect()
    }
    return null
  },

  async consume({ topic, partition, count, offset }) {
    const cluster = await connectedCluster()
    try {
      await cluster.addTargetTopic(topic)
      const [leader] = Object.keys(cluster.findLeaderForPartitions(topic, [partition]))
      const broker = await cluster.findBroker({ nodeId: leader })
      const deadline = Date.now() + READ_TIMEOUT_MS
      const got = []
      let next = BigInt(offset)
      while (got.length < count && Date.now() < deadline) {
        const partitions = [{ partition, fetchOffset: String(next), maxBytes: 1048576 }]
        const { responses } = await broker.fetch({
          replicaId: -1,
          isolationLevel: 0,
          maxWaitTime: 500,
          topics: [{ topic, partitions }],
        })
        for (const message of responses[0].partitions[0].messages) {
          // A batch is answered whole: its first records may lie before the offset asked for.
          if (BigInt(message.offset) >= next && got.length < count) {
            got.push({
              key: encoded(message.key),
              value: encoded(message.value),
              headers: headerPairs(message.headers || {}),
              timestamp: Number(message.timestamp),
              partition,
            })
            next = BigInt(message.offset) + 1n
          }
        }
      }
      return got
    } finally {
      await cluster.disconnect()
    }
  },

  async createTopic({ topic, partitions, config }) {
    const configEntries = Object.entries(config).map(([name, value]) => ({ name, value }))
    const topics = [{ topic, numPartitions: partitions, replicationFactor: 1, configEntries }]
    // The answer "exists already" is `false` here, not an error.
    if (!(await admin.createTopics({ topics }))) {
      throw new Error('topic already exists')
    }
    return null
  },

  async deleteTopic({ topic }) {
    await admin.deleteTopics({ topics: [topic] })
    return null
  },

  async partitionCount({ topic }) {
    if (!(await admin.listTopics()).includes(topic)) {
      return null
    }
    const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
    return topics[0].partitions.length
  },

  async addPartitions({ topic, total }) {
    await admin.createPartitions({ topicPartitions: [{ topic, count: total }] })
    return null
  },

  async topicConfig({ topic }) {
    const resource = { type: ConfigResourceTypes.TOPIC, name: topic }
    const { resources } = await admin.describeConfigs({ resources: [resource] })
    return Object.fromEntries(resources[0].configEntries.map(e => [e.configName, e.configValue]))
  },

  async setTopicConfig({ topic, key, value }) {
    const configEntries = [{ name: key, value }]
    const resource = { type: ConfigResourceTypes.TOPIC, name: topic, configEntries }
    await admin.alterConfigs({ validateOnly: false, resources: [resource] })
    return null
  },

  async deleteRecords({ topic, partition, beforeOffset }) {
    const partitions = [{ partition, offset: String(beforeOffset) }]
    // It looks for the leader before it has asked for the topic's metadata; this asks.
    await admin.fetchTopicOffsets(topic)
    await admin.deleteTopicRecords({ topic, partitions })
    return null
  },

  async offsetFor({ topic, partition, timestamp }) {
    const found =
      timestamp < 0
        ? await admin.fetchTopicOffsets(topic)
        : await admin.fetchTopicOffsetsByTimestamp(topic, timestamp)
    const entry = found.find(each => each.partition === partition)
    return Number(timestamp === -2 ? entry.low : entry.offset)
  },

  async brokers() {
    const { brokers } = await admin.describeCluster()
    return brokers.map(({ host, port }) => `${host}:${port}`)
  },
}

const answer = async line => {
  const request = JSON.parse(line)
  try {
    return { result: await operations[request.op](request) }
  } catch (error) {
    return { error: `${error.name}: ${error.message}` }
  }
}

const main = async zstd => {
  const simple = new zstd.Simple()
  CompressionCodecs[CompressionTypes.ZSTD] = codec(
    bytes => simple.compress(bytes),
    bytes => simple.decompress(bytes)
  )
  await admin.connect()
  for await (const line of readline.createInterface({ input: process.stdin })) {
    process.stdout.write(JSON.stringify(await answer(line)) + '\n')
  }
  await admin.disconnect()
}

ZstdCodec.run(zstd => {
  main(zstd).catch(error => {
    console.error(error)
    process.exitCode = 1
  })
})
