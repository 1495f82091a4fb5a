//! Servers under a bounded load from native clients on loopback, and a video encoder.

use super::{ROW, Real, Run};

/// Starts a server on a socket in the working directory, loads it, asks it, ends it.
macro_rules! redis {
    ($flags:literal) => {
        concat!(
            "$WRAP redis-server --port 0 --unixsocket $PWD/s --save '' --appendonly no --dir $PWD ",
            $flags,
            r#" > log 2>&1 & server=$!
for i in $(seq 400); do [ "$(redis-cli -s s ping 2>/dev/null)" = PONG ] && break; sleep 0.05; done
redis-benchmark -s s -n 4000 -c 16 -q -t set,get,incr,lpush,lrange_100,mset \
    | tr '\r' '\n' | sed -n 's/: [0-9.]* requests per second.*//p'
redis-cli -s s eval 'local t = 0; for i = 1, 10000 do t = t + i end; return t' 0
redis-cli -s s set k v > x; redis-cli -s s get k; redis-cli -s s bgsave > x; sleep 0.3; redis-cli -s s lastsave | wc -l
redis-cli -s s shutdown nosave || true; wait $server; echo "server ended $?"; rm -f log x s *.rdb"#
        )
    };
}

pub(super) const ROWS: &[Real] = &[
    Real {
        name: "redis",
        needs: &["redis-server", "redis-benchmark", "redis-cli"],
        run: Run::Script(redis!("")),
        limit_s: 300,
        ..ROW
    },
    Real {
        name: "redis-io-threads",
        needs: &["redis-server", "redis-benchmark", "redis-cli"],
        run: Run::Script(redis!("--io-threads 2 --io-threads-do-reads yes")),
        limit_s: 300,
        ..ROW
    },
    Real { name: "nginx", needs: &["/usr/sbin/nginx", "ab"], run: Run::Script(NGINX), limit_s: 300, ..ROW },
    Real {
        name: "x264",
        needs: &["x264", "/usr/bin/python3"],
        setup: "/usr/bin/python3 {programs}/clip.py",
        run: Run::Command(&[
            "x264",
            "--threads",
            "2",
            "--preset",
            "medium",
            "--crf",
            "28",
            "-o",
            "clip.264",
            "clip.y4m",
        ]),
        // progress lines, rewritten in place, and the speed at the end
        err: &[r"[^\n]*\r", r"[0-9.]+ fps"],
        limit_s: 600,
        ..ROW
    },
];

const NGINX: &str = r#"
port=$((20000 + $$ % 20000)); mkdir -p root logs temp; seq 500 > root/index.html
cat > nginx.conf <<END
worker_processes 2; daemon off; pid $PWD/pid; error_log $PWD/logs/error.log;
events { worker_connections 128; }
http { access_log off; gzip on; gzip_types text/html; client_body_temp_path temp; proxy_temp_path temp;
  fastcgi_temp_path temp; uwsgi_temp_path temp; scgi_temp_path temp;
  server { listen 127.0.0.1:$port; root $PWD/root; } }
END
$WRAP /usr/sbin/nginx -p $PWD -e logs/error.log -c $PWD/nginx.conf 2> warnings & server=$!
for i in $(seq 400); do (exec 3<>/dev/tcp/127.0.0.1/$port) 2>/dev/null && break; sleep 0.05; done
url=http://127.0.0.1:$port
ab -q -n 3000 -c 16 $url/ 2>&1 | grep -E 'Complete requests|Failed requests|Document Length|Total transferred'
ab -q -k -n 3000 -c 16 -H 'Accept-Encoding: gzip' $url/ 2>&1 | grep -E 'Complete requests|Failed requests'
kill -HUP $(cat pid); sleep 0.5; ab -q -n 500 -c 4 $url/none 2>&1 | grep -E 'Non-2xx'
kill -QUIT $(cat pid); wait $server; echo "server ended $?"; rm -rf root logs temp nginx.conf pid warnings
"#;
