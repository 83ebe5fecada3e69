import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Members of consumer groups, a thread each; see group_consumer.py. Argument: bootstrap. */
public final class GroupConsumer extends Thread {
    private static final Map<String, String> ASSIGNORS = Map.of(
        "range", "org.apache.kafka.clients.consumer.RangeAssignor",
        "roundrobin", "org.apache.kafka.clients.consumer.RoundRobinAssignor",
        "sticky", "org.apache.kafka.clients.consumer.StickyAssignor",
        "cooperative-sticky", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");

    private final CountDownLatch stopped = new CountDownLatch(1);
    private final String bootstrap;
    private final String name;
    private final String topic;
    private final String group;
    private final String assignor;

    private GroupConsumer(String bootstrap, String[] join) {
        this.bootstrap = bootstrap;
        this.name = join[1];
        this.topic = join[2];
        this.group = join[3];
        this.assignor = ASSIGNORS.get(join[4]);
    }

    public static void main(String[] args) throws Exception {
        Map<String, GroupConsumer> members = new HashMap<>();
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("join")) {
                GroupConsumer member = new GroupConsumer(args[0], words);
                members.put(member.name, member);
                member.start();
            } else {
                members.get(words[1]).stopped.countDown();
            }
        }
        for (GroupConsumer member : members.values()) {
            member.stopped.countDown();
            member.join();
        }
    }

    private void say(String what) {
        System.out.println(name + " " + what);
    }

    @Override
    public void run() {
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", bootstrap,
            "group.id", group,
            "auto.offset.reset", "earliest",
            "partition.assignment.strategy", assignor,
            "session.timeout.ms", 6000,
            "heartbeat.interval.ms", 300);
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings, bytes, bytes)) {
            consumer.subscribe(List.of(topic));
            Set<TopicPartition> reported = null;
            while (stopped.getCount() > 0) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                    say("R " + record.partition() + " " + record.offset());
                }
                Set<TopicPartition> assigned = Set.copyOf(consumer.assignment());
                if (!assigned.equals(reported)) {
                    reported = assigned;
                    say("A " + assigned.stream().map(TopicPartition::partition)
                        .sorted().map(String::valueOf).collect(Collectors.joining(",")));
                }
            }
        }
        say("L");
    }
}
