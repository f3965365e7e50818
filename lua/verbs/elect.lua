#!lua flags=allow-oom
-- elect: a process becomes the leader of a partition if nobody else is.
-- USES  clock, gate, pausing, diary
-- KEYS  1 leader  2 meta  3 diary
-- ARGV  1 now  2 process  3 lease  4 schema  5 silent  6 over
--       now ms, '' = server time; process: id without colon, random per process start; lease ms;
--       schema: the number of the layout of keys and values that the caller knows; silent: for how
--       many ms the caller has seen no sign of the leader before it, '' = it never saw one; over:
--       the term of a leader of an older version, '' = none: where paused has a mark, the caller
--       may lead in its place
-- RETURN {'elected', term, now} (also when the caller holds it already) | {'held', term, ttl ms} |
--        {'schema', number}: the partition says that it has another one, nothing was written
-- term is <process>:<epoch>:<lease>. The epoch is max(stored + 1, now), so it grows even after a
-- flush. A lease that lives longer than it was taken for (the clock went back), or for ever, is
-- void. A partition that is led says which schema of keys and values it has.
local leader, meta, diary = KEYS[1], KEYS[2], KEYS[3]
local now, process, lease, schema = clock(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]
local silent, over = tonumber(ARGV[5]), ARGV[6]
local said = redis.call('HMGET', meta, 'epoch', 'schema', 'paused')
-- @other-schema
if said[2] and said[2] ~= schema then return { 'schema', said[2] } end
local term = redis.call('GET', leader)
-- @is-older
local isOlder = term == over and versionIn(said[3])
if term and not isOlder then
  local holder, taken = term:match('^([^:]+):%d+:(%d+)$')
  local ttl = redis.call('PTTL', leader)
  -- @live-lease
  if taken and ttl >= 0 and ttl <= tonumber(taken) then
    return holder == process and { 'elected', term, now } or { 'held', term, ttl }
  end
end
local epoch = math.max((tonumber(said[1]) or 0) + 1, now)
term = ('%s:%.0f:%s'):format(process, epoch, lease)
redis.call('HSET', meta, 'epoch', ('%.0f'):format(epoch), 'schema', schema)
redis.call('HDEL', meta, 'wake')
redis.call('SET', leader, term, 'PX', lease)
local from = silent and ('%.0f'):format(now - silent) or ''
enter(diary, { 'what', 'elected', 'by', process, 'from', from })
return { 'elected', term, now }
