CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c REAL);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000)
  INSERT INTO t SELECT i, printf('%05d', i * 7919 % 30011), i / 7.0 FROM n;
CREATE INDEX x ON t(b);
SELECT count(*), sum(a), max(b), round(avg(c), 3) FROM t WHERE b > '15000';
UPDATE t SET c = -c WHERE a % 3 = 0;
DELETE FROM t WHERE a % 7 = 0;
SELECT a, b, round(c, 2) FROM t ORDER BY c LIMIT 5;
PRAGMA integrity_check;
VACUUM;
