import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** A member of a consumer group; see group_consumer.py. Arguments: bootstrap, topic, group, assignor. */
public final class GroupConsumer {
    private static final Map<String, String> ASSIGNORS = Map.of(
        "range", "org.apache.kafka.clients.consumer.RangeAssignor",
        "roundrobin", "org.apache.kafka.clients.consumer.RoundRobinAssignor",
        "sticky", "org.apache.kafka.clients.consumer.StickyAssignor",
        "cooperative-sticky", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");

    public static void main(String[] args) {
        CountDownLatch stopped = new CountDownLatch(1);
        Thread stdin = new Thread(() -> {
            try {
                while (System.in.read() >= 0) { }
            } catch (IOException e) {
                System.err.println(e);
            }
            stopped.countDown();
        });
        stdin.setDaemon(true);
        stdin.start();
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", args[0],
            "group.id", args[2],
            "auto.offset.reset", "earliest",
            "partition.assignment.strategy", ASSIGNORS.get(args[3]),
            "session.timeout.ms", 6000,
            "heartbeat.interval.ms", 300);
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings, bytes, bytes)) {
            consumer.subscribe(List.of(args[1]));
            Set<TopicPartition> reported = null;
            while (stopped.getCount() > 0) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                    System.out.println("R " + record.partition() + " " + record.offset());
                }
                Set<TopicPartition> assigned = Set.copyOf(consumer.assignment());
                if (!assigned.equals(reported)) {
                    reported = assigned;
                    System.out.println("A " + assigned.stream().map(TopicPartition::partition)
                        .sorted().map(String::valueOf).collect(Collectors.joining(",")));
                }
            }
        }
    }
}
