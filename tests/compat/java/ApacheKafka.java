import java.io.File;
import java.io.FileReader;
import java.net.InetSocketAddress;
import java.util.Properties;
import kafka.server.KafkaConfig;
import kafka.server.KafkaServer;
import org.apache.kafka.common.utils.Time;
import org.apache.zookeeper.server.NIOServerCnxnFactory;
import org.apache.zookeeper.server.ZooKeeperServer;
import scala.Option;

/**
 * Apache Kafka in one JVM, with a ZooKeeper unless the properties name one. Arguments: properties
 * file, ZooKeeper's directory.
 */
public final class ApacheKafka {
    public static void main(String[] args) throws Exception {
        Properties properties = new Properties();
        try (FileReader reader = new FileReader(args[0])) {
            properties.load(reader);
        }
        if (!properties.containsKey("zookeeper.connect")) {
            properties.put("zookeeper.connect", "127.0.0.1:" + startZooKeeper(new File(args[1])));
        }
        KafkaServer server =
            new KafkaServer(KafkaConfig.fromProps(properties), Time.SYSTEM, Option.empty(), false);
        Runtime.getRuntime().addShutdownHook(new Thread(server::shutdown));
        server.startup();
        awaitController(server);
        server.config().effectiveAdvertisedBrokerListeners().foreach(listener -> {
            String name = listener.listenerName().value();
            int port = server.boundPort(listener.listenerName());
            System.out.println("listeners: " + name + "://127.0.0.1:" + port);
            return null;
        });
        System.out.println("started in 0 ms");
        server.awaitShutdown();
    }

    /** Metadata that names no controller yet keeps librdkafka from asking again for long. */
    private static void awaitController(KafkaServer server) throws InterruptedException {
        while (server.metadataCache().getControllerId().isEmpty()
            || !server.metadataCache().hasAliveBroker(server.config().brokerId())) {
            Thread.sleep(10);
        }
    }

    private static int startZooKeeper(File directory) throws Exception {
        NIOServerCnxnFactory connections = new NIOServerCnxnFactory();
        connections.configure(new InetSocketAddress("127.0.0.1", 0), 100);
        ZooKeeperServer server = new ZooKeeperServer(directory, directory, 100);
        // By default 20 ticks, which is less than a busy machine may let a broker wait.
        server.setMaxSessionTimeout(60_000);
        connections.startup(server);
        // Of a broker that was killed: its registration would be in the way of the next one's.
        for (long session : server.getZKDatabase().getSessions()) {
            server.closeSession(session);
        }
        return connections.getLocalPort();
    }
}
