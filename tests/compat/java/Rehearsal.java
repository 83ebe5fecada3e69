import java.io.File;
import java.io.FileWriter;
import java.net.ServerSocket;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Loads what the other programs need, by doing what they do, so that the JVM can archive it: see
 * tools.py. Arguments: a directory, then classes to initialise.
 */
public final class Rehearsal {
    private static final String TOPIC = "rehearsal";

    public static void main(String[] args) throws Exception {
        for (int i = 1; i < args.length; i++) {
            Class.forName(args[i]);
        }
        int port;
        try (ServerSocket free = new ServerSocket(0)) {
            port = free.getLocalPort();
        }
        startBroker(new File(args[0]), port);
        useClients("127.0.0.1:" + port);
        System.exit(0);
    }

    private static void startBroker(File directory, int port) throws Exception {
        Properties settings = new Properties();
        settings.put("broker.id", "0");
        settings.put("listeners", "PLAINTEXT://127.0.0.1:" + port);
        settings.put("log.dirs", new File(directory, "logs").getPath());
        for (String topic : List.of("offsets.topic", "transaction.state.log")) {
            settings.put(topic + ".replication.factor", "1");
            settings.put(topic + ".num.partitions", "1");
        }
        settings.put("transaction.state.log.min.isr", "1");
        settings.put("group.initial.rebalance.delay.ms", "0");
        File file = new File(directory, "server.properties");
        try (FileWriter writer = new FileWriter(file)) {
            settings.store(writer, null);
        }
        String zookeeper = new File(directory, "zookeeper").getPath();
        Thread broker = new Thread(() -> {
            try {
                ApacheKafka.main(new String[] {file.getPath(), zookeeper});
            } catch (Exception e) {
                e.printStackTrace();
                Runtime.getRuntime().halt(1);
            }
        });
        broker.setDaemon(true);
        broker.start();
    }

    private static void useClients(String bootstrap) throws Exception {
        Map<String, Object> reading = Map.of(
            "bootstrap.servers", bootstrap,
            "group.id", TOPIC,
            "auto.offset.reset", "earliest",
            "isolation.level", "read_committed");
        Map<String, Object> writing =
            Map.of("bootstrap.servers", bootstrap, "transactional.id", TOPIC);
        ByteArrayDeserializer fromBytes = new ByteArrayDeserializer();
        ByteArraySerializer toBytes = new ByteArraySerializer();
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
             KafkaConsumer<byte[], byte[]> consumer =
                 new KafkaConsumer<>(reading, fromBytes, fromBytes);
             KafkaProducer<byte[], byte[]> producer =
                 new KafkaProducer<>(writing, toBytes, toBytes)) {
            admin.createTopics(List.of(new NewTopic(TOPIC, 1, (short) 1))).all().get();
            admin.describeTopics(List.of(TOPIC)).allTopicNames().get();
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(TOPIC, 0, null, new byte[] {1}));
            producer.sendOffsetsToTransaction(Map.of(), consumer.groupMetadata());
            producer.commitTransaction();
            consumer.subscribe(List.of(TOPIC));
            while (consumer.poll(Duration.ofMillis(100)).isEmpty()) { }
        }
    }
}
