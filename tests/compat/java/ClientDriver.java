import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.DescribeClusterResult;
import org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo;
import org.apache.kafka.clients.admin.LogDirDescription;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The Java client behind one JSON request and answer per line; see json_driver.py. Argument: bootstrap. */
public final class ClientDriver {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Duration READ_TIMEOUT = Duration.ofSeconds(20);

    private final String bootstrap;
    private final Admin admin;

    private ClientDriver(String bootstrap) {
        this.bootstrap = bootstrap;
        this.admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
    }

    public static void main(String[] args) throws IOException {
        ClientDriver driver = new ClientDriver(args[0]);
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader in =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Map<String, Object> answer = new HashMap<>();
            try {
                answer.put("result", driver.handle(JSON.readTree(line)));
            } catch (ExecutionException e) {
                answer.put("error", e.getCause().toString());
            } catch (Exception e) {
                answer.put("error", e.toString());
            }
            out.println(JSON.writeValueAsString(answer));
        }
        driver.admin.close();
    }

    private Object handle(JsonNode request) throws Exception {
        String topic = request.path("topic").asText();
        TopicPartition partition = new TopicPartition(topic, request.path("partition").asInt());
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        switch (request.get("op").asText()) {
            case "produce":
                return produce(request);
            case "consume":
                return consume(partition, request.get("offset").asLong(), request.get("count").asInt());
            case "createTopic":
                return createTopic(topic, request.get("partitions").asInt(), request.get("config"));
            case "deleteTopic":
                return admin.deleteTopics(List.of(topic)).all().get();
            case "partitionCount":
                return partitionCount(topic);
            case "addPartitions":
                NewPartitions total = NewPartitions.increaseTo(request.get("total").asInt());
                return admin.createPartitions(Map.of(topic, total)).all().get();
            case "topicConfig":
                return config(resource);
            case "setTopicConfig":
                ConfigEntry entry =
                    new ConfigEntry(request.get("key").asText(), request.get("value").asText());
                AlterConfigOp set = new AlterConfigOp(entry, AlterConfigOp.OpType.SET);
                return admin.incrementalAlterConfigs(Map.of(resource, List.of(set))).all().get();
            case "replaceTopicConfig":
                return replaceConfig(resource, request.get("config"));
            case "deleteRecords":
                RecordsToDelete before =
                    RecordsToDelete.beforeOffset(request.get("beforeOffset").asLong());
                admin.deleteRecords(Map.of(partition, before)).all().get();
                return null;
            case "offsetFor":
                return offset(partition, offsetSpec(request.get("timestamp").asLong())).offset();
            case "maxTimestamp":
                ListOffsetsResultInfo found = offset(partition, OffsetSpec.maxTimestamp());
                return List.of(found.offset(), found.timestamp());
            case "brokers":
                return nodes(admin.describeCluster().nodes().get());
            case "describeCluster":
                return describeCluster();
            case "describeLogDirs":
                return describeLogDirs(request.get("broker").asInt());
            case "describeTopic":
                return describeTopic(topic);
            default:
                throw new IllegalArgumentException("unknown op in " + request);
        }
    }

    private Object produce(JsonNode request) throws Exception {
        String topic = request.get("topic").asText();
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("key.serializer", ByteArraySerializer.class);
        settings.put("value.serializer", ByteArraySerializer.class);
        settings.put("compression.type", request.get("codec").asText());
        settings.put("acks", request.get("acks").asText());
        settings.put("enable.idempotence", request.get("idempotent").asBoolean());
        settings.put("max.request.size", 2_000_000);
        settings.put("linger.ms", 5);
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings)) {
            for (JsonNode message : request.get("messages")) {
                List<Header> headers = new ArrayList<>();
                for (JsonNode header : message.get("headers")) {
                    headers.add(new RecordHeader(header.get(0).asText(), bytes(header.get(1))));
                }
                JsonNode timestamp = message.get("timestamp");
                sent.add(producer.send(new ProducerRecord<>(
                    topic,
                    message.get("partition").asInt(),
                    timestamp.isNull() ? null : (Long) timestamp.asLong(),
                    bytes(message.get("key")),
                    bytes(message.get("value")),
                    headers)));
            }
            producer.flush();
        }
        for (Future<RecordMetadata> future : sent) {
            future.get();
        }
        return null;
    }

    private Object consume(TopicPartition partition, long offset, int count) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("key.deserializer", ByteArrayDeserializer.class);
        settings.put("value.deserializer", ByteArrayDeserializer.class);
        settings.put("max.poll.records", count);
        settings.put("auto.offset.reset", "none");
        settings.put("enable.auto.commit", false);
        List<Map<String, Object>> got = new ArrayList<>();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings)) {
            consumer.assign(List.of(partition));
            consumer.seek(partition, offset);
            long deadline = System.nanoTime() + READ_TIMEOUT.toNanos();
            while (got.size() < count && System.nanoTime() < deadline) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(500))) {
                    if (got.size() < count) {
                        got.add(json(record));
                    }
                }
            }
        }
        return got;
    }

    private static Map<String, Object> json(ConsumerRecord<byte[], byte[]> record) {
        List<List<Object>> headers = new ArrayList<>();
        for (Header header : record.headers()) {
            List<Object> pair = new ArrayList<>();
            pair.add(header.key());
            pair.add(header.value());
            headers.add(pair);
        }
        Map<String, Object> message = new HashMap<>();
        message.put("key", record.key());
        message.put("value", record.value());
        message.put("headers", headers);
        message.put("timestamp", record.timestamp());
        message.put("partition", record.partition());
        return message;
    }

    private Object createTopic(String topic, int partitions, JsonNode config) throws Exception {
        NewTopic created = new NewTopic(topic, partitions, (short) 1).configs(strings(config));
        return admin.createTopics(List.of(created)).all().get();
    }

    private Integer partitionCount(String topic) throws Exception {
        try {
            return describe(topic).partitions().size();
        } catch (ExecutionException e) {
            if (e.getCause() instanceof UnknownTopicOrPartitionException) {
                return null;
            }
            throw e;
        }
    }

    private TopicDescription describe(String topic) throws Exception {
        return admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
    }

    private Object describeTopic(String topic) throws Exception {
        TopicDescription description = describe(topic);
        List<List<Object>> partitions = new ArrayList<>();
        description.partitions().forEach(info -> {
            List<Integer> isr = new ArrayList<>();
            info.isr().forEach(node -> isr.add(node.id()));
            partitions.add(List.of(info.partition(), info.leader().id(), isr));
        });
        return Map.of(
            "topicId", description.topicId().toString(),
            "internal", description.isInternal(),
            "partitions", partitions);
    }

    private Map<String, String> config(ConfigResource resource) throws Exception {
        Map<String, String> values = new TreeMap<>();
        Config config = admin.describeConfigs(List.of(resource)).all().get().get(resource);
        config.entries().forEach(entry -> values.put(entry.name(), entry.value()));
        return values;
    }

    /** The call before IncrementalAlterConfigs: what is not named goes back to its default. */
    @SuppressWarnings("deprecation")
    private Object replaceConfig(ConfigResource resource, JsonNode config) throws Exception {
        List<ConfigEntry> entries = new ArrayList<>();
        strings(config).forEach((key, value) -> entries.add(new ConfigEntry(key, value)));
        return admin.alterConfigs(Map.of(resource, new Config(entries))).all().get();
    }

    private ListOffsetsResultInfo offset(TopicPartition partition, OffsetSpec spec)
        throws Exception {
        return admin.listOffsets(Map.of(partition, spec)).all().get().get(partition);
    }

    private static OffsetSpec offsetSpec(long timestamp) {
        if (timestamp == -2) {
            return OffsetSpec.earliest();
        }
        return timestamp == -1 ? OffsetSpec.latest() : OffsetSpec.forTimestamp(timestamp);
    }

    private Object describeCluster() throws Exception {
        DescribeClusterResult result = admin.describeCluster();
        return Map.of(
            "clusterId", result.clusterId().get(),
            "controller", result.controller().get().id(),
            "nodes", nodes(result.nodes().get()));
    }

    private Object describeLogDirs(int broker) throws Exception {
        Map<String, Object> found = new HashMap<>();
        Map<String, LogDirDescription> dirs =
            admin.describeLogDirs(Collections.singleton(broker)).allDescriptions().get().get(broker);
        dirs.forEach((dir, description) -> {
            Map<String, Long> sizes = new TreeMap<>();
            description.replicaInfos().forEach((tp, info) -> sizes.put(tp.toString(), info.size()));
            found.put(dir, sizes);
        });
        return found;
    }

    private static List<String> nodes(Collection<Node> nodes) {
        List<String> addresses = new ArrayList<>();
        nodes.forEach(node -> addresses.add(node.host() + ":" + node.port()));
        return addresses;
    }

    private static Map<String, String> strings(JsonNode object) {
        Map<String, String> values = new HashMap<>();
        object.fields().forEachRemaining(field -> values.put(field.getKey(), field.getValue().asText()));
        return values;
    }

    private static byte[] bytes(JsonNode node) throws IOException {
        return node.isNull() ? null : node.binaryValue();
    }
}
