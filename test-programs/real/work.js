// node: hot code for the JIT, generated functions, a child, a stack overflow, four workers.
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
function hot(n) { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + (i ^ (s >>> 3))) | 0; return s; }
if (!isMainThread) {
  parentPort.postMessage([workerData, hot(200000 + workerData)]);
} else {
  const { execSync } = require('child_process'), crypto = require('crypto'), zlib = require('zlib');
  console.log(hot(300000), execSync('echo child').toString().trim(), crypto.createHash('sha1').update('x').digest('hex'));
  console.log(zlib.inflateSync(zlib.deflateSync(Buffer.alloc(100000, 'ab'))).length, /(\w+)\s\1/.exec('say hello hello').index);
  const f = new Function('a', 'b', 'return a * b + 1');
  let t = 0;
  for (let i = 0; i < 1e5; i++) t += f(i, 2);
  console.log(t);
  try { (function r() { r(); })(); } catch (e) { console.log(e.constructor.name); }
  Promise.all([0, 1, 2, 3].map(i => new Promise(ok => new Worker(__filename, { workerData: i }).on('message', ok))))
    .then(r => console.log(JSON.stringify(r)));
}
