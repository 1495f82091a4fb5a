"""Python: threads, a process pool, children, an interval timer, C libraries, fork."""
import ctypes, hashlib, multiprocessing, os, queue, signal, sqlite3, subprocess, threading, zlib

q, done = queue.Queue(), []
def worker():
    while (i := q.get()) is not None:
        done.append(i * i)

if __name__ == "__main__":
    threads = [threading.Thread(target=worker) for _ in range(4)]
    [t.start() for t in threads]; [q.put(i) for i in range(500)]; [q.put(None) for _ in threads]; [t.join() for t in threads]
    print(sum(done), subprocess.check_output(["echo", "child"]).decode().strip())
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(pool.map(abs, range(-5, 5)))
    hits = []
    signal.signal(signal.SIGALRM, lambda *a: hits.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    while len(hits) < 20:
        sum(range(100))
    signal.setitimer(signal.ITIMER_REAL, 0)
    print(len(hits) >= 20, hashlib.sha256(b"x" * 100000).hexdigest()[:16], zlib.crc32(b"y" * 100000))
    print(sqlite3.connect(":memory:").execute("select sum(value) from json_each('[1,2,3]')").fetchone())
    print(ctypes.CDLL(None).abs(-5), flush=True)
    pid = os.fork()
    if pid == 0:
        os._exit(9)
    print(os.waitpid(pid, 0)[1] >> 8)
