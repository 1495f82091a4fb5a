import java.util.*;
import java.util.concurrent.*;
import java.util.stream.*;

/** Thousands of null pointer exceptions by fault, a stack overflow, a thread pool, garbage, a shutdown hook. */
public class Work {
  static int depth;
  static void deep() { depth++; deep(); }
  static int length(String s) { return s.length(); }
  public static void main(String[] args) throws Exception {
    int caught = 0;
    for (int i = 0; i < 40000; i++) try { length(i % 2 == 0 ? null : "x"); } catch (NullPointerException e) { caught++; }
    System.out.println("caught " + caught);
    try { deep(); } catch (StackOverflowError e) { System.out.println("overflow " + (depth > 1000)); }
    ExecutorService pool = Executors.newFixedThreadPool(4);
    List<Future<Long>> futures = new ArrayList<>();
    for (int t = 0; t < 8; t++) {
      final long n = t;
      futures.add(pool.submit(() -> LongStream.range(0, 200000).map(x -> x * n ^ x >> 3).sum()));
    }
    long sum = 0;
    for (Future<Long> f : futures) sum += f.get();
    pool.shutdown();
    System.out.println("sum " + sum);
    Map<String, Integer> m = new TreeMap<>();
    for (int i = 0; i < 100000; i++) m.merge("k" + i * 7919L % 997, 1, Integer::sum);
    System.out.println(m.size() + " " + m.get("k5"));
    List<byte[]> garbage = new ArrayList<>();
    for (int i = 0; i < 2000; i++) { garbage.add(new byte[100000]); if (garbage.size() > 50) garbage.clear(); }
    Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("hook")));
    System.out.println("done");
    System.exit(0);
  }
}
