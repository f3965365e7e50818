#!lua flags=allow-oom
-- bury: a running job ran out of budget, cannot succeed or cannot be read: it becomes a dead letter.
-- KEYS  1 scheduled  2 jobs  3 runs  4 ready  5 dead  6 done  7 meta  8 wake
-- ARGV  1 now  2 window  3 entry  4 member  5 token  6 reason  7 error  8 compensation  9 compensationRecord
--       now ms, '' = server time; window ms of tombstones; reason: one word or sentence; error: one line of JSON, '' = none;
--       compensation: member of a job that is to take half-done effects back, '' = none; compensationRecord: its record
-- RETURN {'ok', dead letter id} | {'cancelled'} (a cancel was requested) | {'already'} | {'fenced'} | {'gone'}
-- The dead letter is added first; a call that was cut off after that finds it again instead of adding a second one, among the
-- newest 8 dead letters, or 256 KiB of them. The tombstone names its dead letter, so that a replay removes that tombstone and no other. The compensation job is due at once.
local scheduled, jobs, runs, ready = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local dead, done, meta, wake = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local now, window, entry, member, token = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], ARGV[4], ARGV[5]
if not now then local t = redis.call('TIME') now = t[1] * 1000 + math.floor(t[2] / 1000) end
local record = redis.call('HGET', jobs, member) or ''
local last, generation, attempts, here, cancel, asked, digest, history =
  (redis.call('HGET', runs, member) or ''):match('^(%d+) (%d+) (%d+) %d+ %d+ (%S+) %S+ %S+ (%d) (%S+) (%S+)(.*)$')
if not last then return { record:match('^%.%w+ %S+ (%d+)') == token and 'already' or 'gone' } end
if last == token and here == '-' then return { 'already' } end
if last ~= token or here ~= entry then return { 'fenced' } end

local reply, deadLetter = { 'cancelled' }, '-'
if cancel ~= '1' then
  history = history .. (ARGV[7] == '' and '' or '\n' .. ARGV[7])
  while select(2, history:gsub('\n', '')) > 5 do history = history:gsub('^\n[^\n]*', '', 1) end
  local from, bytes, looked = '+', 0, 0
  while deadLetter == '-' and looked < 8 and bytes < 262144 do
    local recent = redis.call('XREVRANGE', dead, from, '-', 'COUNT', 1)[1]
    if not recent then break end
    if recent[2][2] == member and recent[2][10] == token then deadLetter = recent[1] end
    for _, word in ipairs(recent[2]) do bytes = bytes + #word end
    from, looked = '(' .. recent[1], looked + 1
  end
  if deadLetter == '-' then deadLetter = redis.call('XADD', dead, '*', 'member', member, 'record', record, 'reason', ARGV[6],
    'history', history:sub(2), 'token', token, 'attempts', attempts, 'generation', generation, 'at', ('%.0f'):format(now)) end
  reply = { 'ok', deadLetter }
  if ARGV[8] ~= '' and redis.call('HSTRLEN', jobs, ARGV[8]) == 0 then
    redis.call('ZADD', scheduled, ('%.0f'):format(now), ARGV[8])
    redis.call('HSET', jobs, ARGV[8], ARGV[9])
    redis.call('HINCRBY', meta, 'n.scheduled', 1)
    if now < (tonumber(redis.call('HGET', meta, 'wake') or -1)) then
      redis.call('HSET', meta, 'wake', ('%.0f'):format(now))
      redis.call('SPUBLISH', wake, ('%.0f'):format(now))
    end
  end
end
-- @count-end
redis.call('HINCRBY', meta, cancel == '1' and 'n.cancelled' or 'n.dead', 1)
if redis.call('ZSCORE', scheduled, member) then redis.call('HINCRBY', meta, 'n.adopted', 1)
elseif window > 0 then
  redis.call('HSET', jobs, member, ('.%s%s %s %s %s %s'):format(cancel == '1' and 'c' or 'x', asked, digest, token, attempts, deadLetter))
  redis.call('ZADD', done, now, member)
else redis.call('HDEL', jobs, member) end
-- @forget-run
redis.call('HDEL', runs, member)
-- @delete-entry
redis.call('XDEL', ready, entry)
-- @ack-entry
redis.call('XACK', ready, 'workers', entry)
return reply
