#!lua
-- commit: a running job is over, together with effects its handler asked for, in one step on the partition's slot.
-- KEYS  1 scheduled  2 jobs  3 runs  4 ready  5 dead  6 done  7 meta  then one key per command
-- ARGV  1 now  2 window  3 entry  4 member  5 token  then per command: size, name, words
--       now ms, '' = server time; window ms of tombstones; size: number of words after the key; a command is name, key, words
-- RETURN 'ok' | 'cancelled' (a cancel was requested: no effect) | 'already' | 'fenced' | 'gone' |
--        'half', number of the refused command, its error (a later one was refused: the job is a dead letter)
-- The effects come first. If the first is refused, nothing has happened: the error reaches the caller and the job is not
-- over. If a later one is, those before it stay, and a second start would have them twice: the job becomes a dead letter
-- in this very step. No allow-oom, because the effects may need memory; nothing has happened then either.
local scheduled, jobs, runs, ready, dead, done, meta = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local now, window, entry, member, token = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], ARGV[4], ARGV[5]
if not now then local t = redis.call('TIME') now = t[1] * 1000 + math.floor(t[2] / 1000) end
local last, generation, attempts, here, cancel, asked, digest, history =
  (redis.call('HGET', runs, member) or ''):match('^(%d+) (%d+) (%d+) %d+ %d+ (%S+) %S+ %S+ (%d) (%S+) (%S+)(.*)$')
if not last then
  local outcome, settled = (redis.call('HGET', jobs, member) or ''):match('^%.(%l)%w+ %S+ (%d+)')
  return settled == token and ({ c = 'cancelled', d = 'already', x = 'already' })[outcome] or 'gone'
end
if last ~= token or here ~= entry then return 'fenced' end

local function deadLetterOf(refusal)
  history = history .. ('\n{"t":%.0f,"a":%s,"k":"failure","m":"%s"}'):format(now, attempts, refusal:gsub('[%c"\\]', ' '))
  while select(2, history:gsub('\n', '')) > 5 do history = history:gsub('^\n[^\n]*', '', 1) end
  local from, bytes, looked = '+', 0, 0
  while looked < 8 and bytes < 262144 do
    local recent = redis.call('XREVRANGE', dead, from, '-', 'COUNT', 1)[1]
    if not recent then break end
    if recent[2][2] == member and recent[2][10] == token then return recent[1] end
    for _, word in ipairs(recent[2]) do bytes = bytes + #word end
    from, looked = '(' .. recent[1], looked + 1
  end
  return redis.call('XADD', dead, '*', 'member', member, 'record', redis.call('HGET', jobs, member) or '', 'reason', 'half-committed',
    'history', history:sub(2), 'token', token, 'attempts', attempts, 'generation', generation, 'at', ('%.0f'):format(now))
end

local reply, outcome, deadLetter, at = 'ok', 'd', '-', 6
if cancel == '1' then reply, outcome = 'cancelled', 'c' end
for index = 8, cancel == '1' and 0 or #KEYS do
  local size = tonumber(ARGV[at])
  local answer = redis.pcall(ARGV[at + 1], KEYS[index], unpack(ARGV, at + 2, at + 1 + size))
  at = at + 2 + size
  if type(answer) == 'table' and answer.err then
    if index == 8 then return answer end
    reply, outcome = ('half %d %s'):format(index - 7, answer.err), 'x'
    deadLetter = deadLetterOf(('command %d of the commit was refused: %s'):format(index - 7, answer.err))
    break
  end
end
if redis.call('ZSCORE', scheduled, member) then redis.call('HINCRBY', meta, 'n.adopted', 1)
elseif window > 0 then
  redis.call('HSET', jobs, member, ('.%s%s %s %s %s %s'):format(outcome, asked, digest, token, attempts, deadLetter))
  redis.call('ZADD', done, now, member)
else redis.call('HDEL', jobs, member) end
redis.call('HINCRBY', meta, ({ c = 'n.cancelled', d = 'n.done', x = 'n.dead' })[outcome], 1)
redis.call('HDEL', runs, member)
-- @delete-entry
redis.call('XDEL', ready, entry)
-- @ack-entry
redis.call('XACK', ready, 'workers', entry)
return reply
