#!lua flags=allow-oom
-- defer: a running job was put aside by its handler (a lock is taken) and goes back to scheduled; no failure is counted.
-- KEYS  1 scheduled  2 jobs  3 runs  4 ready  5 done  6 meta  7 wake
-- ARGV  1 now  2 window  3 entry  4 member  5 token  6 delay
--       now ms, '' = server time; window ms of tombstones; delay ms
-- RETURN {'ok', due} | {'cancelled'} (a cancel was requested) | {'already'} | {'fenced'} | {'gone'}
-- A member that is in scheduled meanwhile stays as it is there: its producer's newer wish wins.
local scheduled, jobs, runs, ready, done, meta, wake = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local now, window, entry, member, token = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], ARGV[4], ARGV[5]
if not now then local t = redis.call('TIME') now = t[1] * 1000 + math.floor(t[2] / 1000) end
local last, generation, attempts, failures, crashes, here, cancel, asked, digest, history =
  (redis.call('HGET', runs, member) or ''):match('^(%d+) (%d+) (%d+) (%d+) (%d+) (%S+) %S+ %S+ (%d) (%S+) (%S+)(.*)$')
if not last then
  local settled = (redis.call('HGET', jobs, member) or ''):match('^%.%w+ %S+ (%d+)')
  return { settled == token and 'already' or 'gone' }
end
if last == token and here == '-' then return { 'already' } end
if last ~= token or here ~= entry then return { 'fenced' } end

-- @first-write
local reply, due = { 'ok' }, ('%.0f'):format(now + tonumber(ARGV[6]))
if cancel == '1' then
  reply = { 'cancelled' }
  if window > 0 then
    redis.call('HSET', jobs, member, ('.c%s %s %s %s -'):format(asked, digest, token, attempts))
    redis.call('ZADD', done, now, member)
  else redis.call('HDEL', jobs, member) end
  redis.call('HINCRBY', meta, 'n.cancelled', 1)
  redis.call('HDEL', runs, member)
else
  redis.call('ZADD', scheduled, 'NX', due, member)
  redis.call('HSET', runs, member, table.concat({ token, generation, attempts, failures, crashes, '- -', due, '0', asked, digest }, ' ') .. history)
  redis.call('HINCRBY', meta, 'n.deferred', 1)
  if tonumber(due) < (tonumber(redis.call('HGET', meta, 'wake') or -1)) then
    redis.call('HSET', meta, 'wake', due)
    redis.call('SPUBLISH', wake, due)
  end
  reply[2] = due
end
-- @delete-entry
redis.call('XDEL', ready, entry)
redis.call('XACK', ready, 'workers', entry)
return reply
