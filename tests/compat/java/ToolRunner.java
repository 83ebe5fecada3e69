import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.security.Permission;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Kafka's command-line tools one after the other in one JVM: a start of it costs more than
 * most of the tools. A request per line on standard input, an answer per line on standard output:
 * {"main": "kafka.tools.ConsoleProducer", "args": [...], "stdin": "..."}
 * -> {"code": 0, "stdout": "...", "stderr": "..."}
 */
public class ToolRunner {
    private static final long HOOK_TIMEOUT_MS = 10_000;

    /** Ends a tool where it would have ended its JVM. */
    private static final class Exited extends Error {
        Exited() {
            super("exit", null, false, false);
        }
    }

    /** Scala keeps the System.out that it finds first, so that one stays and its target moves. */
    private static final class Switchable extends OutputStream {
        private ByteArrayOutputStream target = new ByteArrayOutputStream();
        private boolean ended;

        @Override
        public synchronized void write(int b) {
            if (!ended) {
                target.write(b);
            }
        }

        @Override
        public synchronized void write(byte[] bytes, int offset, int length) {
            if (!ended) {
                target.write(bytes, offset, length);
            }
        }

        /** What a tool says that caught the end of its JVM as an error counts no more. */
        synchronized void end() {
            ended = true;
        }

        synchronized String take() {
            String said = new String(target.toByteArray(), StandardCharsets.UTF_8);
            target = new ByteArrayOutputStream();
            ended = false;
            return said;
        }
    }

    /** For tools that do not end by Kafka's Exit. */
    @SuppressWarnings("removal")
    private static final class ExitWatch extends SecurityManager {
        @Override
        public void checkExit(int status) {
            exit(status);
        }

        @Override
        public void checkPermission(Permission permission) {}

        @Override
        public void checkPermission(Permission permission, Object context) {}
    }

    private static final Switchable OUT = new Switchable();
    private static final Switchable ERR = new Switchable();
    private static final AtomicReference<Integer> CODE = new AtomicReference<>();

    private static void exit(int status) {
        if (CODE.compareAndSet(null, status)) {
            OUT.end();
            ERR.end();
        }
        throw new Exited();
    }

    @SuppressWarnings("removal")
    public static void main(String[] args) throws Exception {
        PrintStream answers = System.out;
        BufferedReader requests =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        System.setOut(new PrintStream(OUT, true, "UTF-8"));
        System.setErr(new PrintStream(ERR, true, "UTF-8"));
        System.setSecurityManager(new ExitWatch());
        ObjectMapper mapper = new ObjectMapper();
        String line;
        while ((line = requests.readLine()) != null) {
            JsonNode request = mapper.readTree(line);
            String stdin = request.path("stdin").asText("");
            System.setIn(new ByteArrayInputStream(stdin.getBytes(StandardCharsets.UTF_8)));
            List<String> arguments = new ArrayList<>();
            request.path("args").forEach(argument -> arguments.add(argument.asText()));
            ObjectNode answer = mapper.createObjectNode();
            answer.put("code", run(request.path("main").asText(), arguments));
            answer.put("stdout", OUT.take());
            answer.put("stderr", ERR.take());
            answers.println(mapper.writeValueAsString(answer));
            answers.flush();
        }
        System.setSecurityManager(null);
    }

    private static int run(String mainClass, List<String> arguments) throws Exception {
        CODE.set(null);
        List<Runnable> hooks = new ArrayList<>();
        Exit.setExitProcedure((status, message) -> exit(status));
        Exit.setHaltProcedure((status, message) -> exit(status));
        Exit.setShutdownHookAdder((name, hook) -> hooks.add(hook));
        try {
            Class.forName(mainClass)
                .getMethod("main", String[].class)
                .invoke(null, (Object) arguments.toArray(new String[0]));
        } catch (InvocationTargetException e) {
            if (!(e.getCause() instanceof Exited)) {
                // As the JVM does with what main throws.
                System.err.print("Exception in thread \"main\" ");
                e.getCause().printStackTrace();
                CODE.compareAndSet(null, 1);
            }
        }
        for (Runnable hook : hooks) {
            Thread thread = new Thread(hook);
            thread.setDaemon(true);
            thread.start();
            thread.join(HOOK_TIMEOUT_MS);
        }
        return CODE.get() == null ? 0 : CODE.get();
    }
}
