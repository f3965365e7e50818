#!lua
-- commit: a running job is over, together with effects its handler asked for, in one step on the
-- partition's slot.
-- USES  clock, log-lines, run, telling, history, tombstone, tags, sets, digits, weight, nudge,
--       callback, end-tags, dead-letter, settle, group, head, let-go, line, gate, rates, lent,
--       pausing, again, own, charge, costs, keeping, lanes, opening, yielding, leaving, turns,
--       heads, shutting, letting-through, giving-up, named, past
-- KEYS  1 scheduled  2 jobs  3 runs  4 ready  5 dead  6 done  7 meta  8 tags  9 line  10 lanes
--       11 holds  12 groups  13 order  14 work  15 wake  16 logs  17 past  18 ended
--       then one key per command
-- ARGV  1 now  2 window  3 entry  4 member  5 token  6 note  then per command: size, name, words
--       now ms, '' = server time; window ms of tombstones; note: see past, '' = no history is kept;
--       size: number of words after the key; a command is name, key, words
-- RETURN 'ok' | 'cancelled' (a cancel was requested: no effect) | 'already' | 'fenced' | 'gone' |
--        'half', number of the refused command, its error (a later one was refused: the job is a
--        dead letter, from which the same call is told so again)
-- The effects come first. If the first is refused, nothing has happened: the error reaches the
-- caller and the job is not over. If a later one is, those before it stay, and a second start would
-- have them twice: the job becomes a dead letter in this very step. No allow-oom, because the
-- effects may need memory; nothing has happened then either. A message to the leader is no effect:
-- it may be refused. An effect that writes the record of a
-- job, as commitJob asks for, makes the partition heavier.
local scheduled, jobs, runs, ready = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local dead, done, meta, tags = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local line, lanes, holds, groups = KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local order, work, wake = KEYS[13], KEYS[14], KEYS[15]
local logs, past, ended = KEYS[16], KEYS[17], KEYS[18]
local keys = { scheduled = scheduled, jobs = jobs, runs = runs, ready = ready, meta = meta,
  tags = tags, line = line, lanes = lanes, holds = holds, groups = groups, order = order,
  work = work, wake = wake }
local now, micros = clock(ARGV[1])
local window = tonumber(ARGV[2])
local entry, member, token, note = ARGV[3], ARGV[4], ARGV[5], ARGV[6]

local run = runOf(redis.call('HGET', runs, member))
if not run then
  --@lazy
  local outcome, settled = settledIn(jobs, member)
  local said = settled == token and ({ c = 'cancelled', d = 'already' })[outcome]
  if said then return said end
  -- @named-letter
  local isDead = settled == token and outcome == 'x'
  local found = isDead and deadLetterIn(dead, tombstoneOf(jobs, member))
    or deadLetterOf(dead, member, token)
  local history = found and found[2][6] == 'half-committed' and found[2][8] or ''
  local number, refusal = history:match('.*"command (%d+) of the commit was refused: ([^"]*)"')
  return number and ('half %s %s'):format(number, refusal) or 'gone'
end
local isOther = run.token ~= token or run.entry ~= entry
if isOther then return hasLivedOn(run, token) and 'already' or 'fenced' end

local function deadLetterId(refusal)
  local found = deadLetterOf(dead, member, token)
  if found then return found[1] end
  local line = ('{"t":%.0f,"a":%s,"k":"failure","m":"%s"}'):format(now, run.attempts, refusal)
  countFailure(run, line)
  run.member, run.record = member, redis.call('HGET', jobs, member) or ''
  run.reason = 'half-committed'
  return addDeadLetter(dead, now, run)
end

local isCancelled, livesOn = hasBit(run.cancel, STOP), hasNews(run)
local reply, outcome = isCancelled and 'cancelled' or 'ok', isCancelled and 'c' or 'd'
local deadLetter, at, heavier, more = '-', 7, 0, 0
for index = 19, isCancelled and 0 or #KEYS do
  local size = tonumber(ARGV[at])
  local answer = redis.pcall(ARGV[at + 1], KEYS[index], unpack(ARGV, at + 2, at + 1 + size))
  -- @next-job
  local isJob = ARGV[at + 1] == 'HSET' and KEYS[index] == jobs and answer == 1
  heavier = heavier + (isJob and #ARGV[at + 3] or 0)
  at, more = at + 2 + size, more + (isJob and 1 or 0)
  if type(answer) == 'table' and answer.err and KEYS[index] ~= wake then
    if index == 19 then return answer end
    reply, outcome = ('half %d %s'):format(index - 18, answer.err), 'x'
    local refusal = ('command %d of the commit was refused: %s'):format(index - 18, answer.err)
    deadLetter = livesOn and '-' or deadLetterId((refusal:gsub('[%c"\\]', ' ')))
    break
  end
end
local state = redis.call('HMGET', meta, 'gates', 'gate', 'paused', 'held', 'logs')
keys.logs = state[5] and logs
linesToDead(keys.logs, member, deadLetter)
if state[1] then
  --@lazy
  holdGroup(keys, state[1], member, deadLetter)
end
if not livesOn and redis.call('ZSCORE', scheduled, member) then
  redis.call('HINCRBY', meta, 'n.adopted', 1)
  reweigh(meta, heavier, more, state[4])
else
  local mark, record = markIn(jobs, member)
  local tombstone = tombstoneText(outcome, mark, token, run.attempts, deadLetter)
  if note ~= '' then
    local over = { member = member, outcome = outcome, mark = mark, run = run, note = note }
    over.deadLetter = deadLetter
    keepPast(past, ended, now, { over })
  end
  if livesOn then
    --@lazy
    liveAgain(keys, member, run)
    reweigh(meta, heavier, more, state[4])
  else
    settle(jobs, done, keys.logs, member, tombstone, now, window)
    reweigh(meta, heavier - #record, more - 1, state[4])
    endTags(keys, now, member, tagsOf(record), outcome)
    tellEnd(meta, run, member, outcome)
  end
end
redis.call('HINCRBY', meta, ({ c = 'n.cancelled', d = 'n.done', x = 'n.dead' })[outcome], 1)
if not livesOn then
  redis.call('HDEL', runs, member)
end
giveUp(keys, state, now, micros, { entry }, { member }, {}, true)
return reply
