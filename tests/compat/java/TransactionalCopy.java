import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** As transactional_copy.py. Arguments: bootstrap, source, target. */
public final class TransactionalCopy {
    private static final String NAME = "copy";

    public static void main(String[] args) {
        Map<String, Object> reading = Map.of(
            "bootstrap.servers", args[0],
            "group.id", NAME,
            "group.instance.id", NAME,
            "isolation.level", "read_committed",
            "auto.offset.reset", "earliest",
            "enable.auto.commit", false,
            "max.poll.records", 10);
        Map<String, Object> writing =
            Map.of("bootstrap.servers", args[0], "transactional.id", NAME);
        ByteArrayDeserializer fromBytes = new ByteArrayDeserializer();
        ByteArraySerializer toBytes = new ByteArraySerializer();
        try (KafkaConsumer<byte[], byte[]> consumer =
                 new KafkaConsumer<>(reading, fromBytes, fromBytes);
             KafkaProducer<byte[], byte[]> producer =
                 new KafkaProducer<>(writing, toBytes, toBytes)) {
            producer.initTransactions();
            consumer.subscribe(List.of(args[1]));
            int copied = 0;
            while (true) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(500));
                if (records.isEmpty()) {
                    continue;
                }
                producer.beginTransaction();
                Map<TopicPartition, OffsetAndMetadata> positions = new HashMap<>();
                for (ConsumerRecord<byte[], byte[]> record : records) {
                    producer.send(
                        new ProducerRecord<>(args[2], record.partition(), null, record.value()));
                    positions.put(
                        new TopicPartition(record.topic(), record.partition()),
                        new OffsetAndMetadata(record.offset() + 1));
                }
                producer.sendOffsetsToTransaction(positions, consumer.groupMetadata());
                producer.commitTransaction();
                copied += records.count();
                System.out.println(copied);
                System.out.flush();
            }
        }
    }
}
