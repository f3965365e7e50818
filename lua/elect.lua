#!lua flags=allow-oom
-- elect: a process becomes the leader of a partition if nobody else is.
-- KEYS  1 leader  2 meta
-- ARGV  1 now  2 process  3 lease
--       now ms, '' = server time; process: id without colon, random per process start; lease ms
-- RETURN {'elected', term, now} (also when the caller holds it already) | {'held', term, ttl ms}
-- term is <process>:<epoch>:<lease>. The epoch is max(stored + 1, now), so it grows even after a flush. A lease that
-- lives longer than it was taken for (the clock went back), or for ever, is void. A partition that is led says which
-- schema of keys and values it has.
local leader, meta, process = KEYS[1], KEYS[2], ARGV[2]
local now = tonumber(ARGV[1])
if not now then local t = redis.call('TIME') now = t[1] * 1000 + math.floor(t[2] / 1000) end
local term = redis.call('GET', leader)
if term then
  local holder, lease = term:match('^([^:]+):%d+:(%d+)$')
  local ttl = redis.call('PTTL', leader)
  -- @live-lease
  if lease and ttl >= 0 and ttl <= tonumber(lease) then
    return holder == process and { 'elected', term, now } or { 'held', term, ttl }
  end
end
local epoch = math.max((tonumber(redis.call('HGET', meta, 'epoch')) or 0) + 1, now)
term = ('%s:%.0f:%s'):format(process, epoch, ARGV[3])
redis.call('HSET', meta, 'epoch', ('%.0f'):format(epoch), 'schema', 1)
redis.call('HDEL', meta, 'wake')
redis.call('SET', leader, term, 'PX', ARGV[3])
return { 'elected', term, now }
