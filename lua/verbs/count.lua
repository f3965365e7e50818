#!lua flags=no-writes
-- count: how many jobs wait and run, at one moment, a page of ready at a time; or, of a small
-- partition, which they are.
-- USES  run, tombstone, digits, line
-- KEYS  1 scheduled  2 jobs  3 runs  4 ready  5 meta  6 stale
-- ARGV  1 generation  2 from  3 to  4 after  5 last  6 limit  7 mode
--       from, to: due at from or later and before to, '' = any; after: the entry looked at last,
--       '' = the first page, which counts scheduled too; last: the entry that is the end, '' = the
--       newest; limit: entries of a page; mode count | members
-- RETURN {'count', scheduled, waiting, ready, running, next page or '' = that was all, last, mark,
--        then member, state and due of each in mode members}; {'large'} for more than limit members
--        and entries in mode members; {'moved', generation}
-- A job is counted once, at one entry. It runs if its run has an owner, under whatever entry; else
-- it is scheduled if scheduled has it, and ready if not. An entry that a job left behind counts
-- nothing, nor does one whose job is over. The mark of two pages is the same if nothing moved in
-- between. No record is read.
local scheduled, jobs, runs = KEYS[1], KEYS[2], KEYS[3]
local ready, meta, stale = KEYS[4], KEYS[5], KEYS[6]
local generation, from, to = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local after, last, limit, mode = ARGV[4], ARGV[5], tonumber(ARGV[6]), ARGV[7]
local current = redis.call('HGET', meta, 'generation') or '0'
if current ~= generation then return { 'moved', current } end
local low, high = from or '-inf', ('(%.0f'):format(math.min(to or WAITS, WAITS))
local first = ('%.0f'):format(WAITS + (from or 0))
local beyond = ('(%.0f'):format(to and WAITS + to or WAITS_END)
local counts, found, seen = { scheduled = 0, waiting = 0, ready = 0, running = 0 }, {}, {}
local isFirst, isListed = after == '', mode == 'members'
if isFirst then
  counts.waiting = redis.call('ZCOUNT', scheduled, first, beyond)
  counts.scheduled = redis.call('ZCOUNT', scheduled, low, high)
end
local held = counts.scheduled + counts.waiting + redis.call('XLEN', ready)
if isListed and held > limit then return { 'large' } end

local function isMeant(due)
  return due >= (from or -math.huge) and due < (to or math.huge)
end

local function stateAt(entry, member, waits, run, left)
  local tombstone, length = tombstoneOf(jobs, member)
  if seen[member] or tombstone and not waits or length == 0 then return nil end
  if run and run.owner ~= '-' then
    local isElsewhere = run.entry ~= entry
      and #redis.call('XRANGE', ready, run.entry, run.entry) > 0
    return not isElsewhere and 'running' or nil
  end
  local isLeft = left and tonumber(entry:match('^%d+')) < tonumber(left)
  return not (waits or isLeft) and 'ready' or nil
end

local function add(member, state, due)
  seen[member] = true
  if isListed then
    found[#found + 1], found[#found + 2], found[#found + 3] = member, state, due
  end
end

local entries = redis.call('XRANGE', ready, isFirst and '-' or '(' .. after,
  last == '' and '+' or last, 'COUNT', limit)
local members = {}
for nth, entry in ipairs(entries) do
  members[nth] = entry[2][2]
end
local dues = #entries > 0 and redis.call('ZMSCORE', scheduled, unpack(members))
local texts = #entries > 0 and redis.call('HMGET', runs, unpack(members))
local lefts = #entries > 0 and redis.call('ZMSCORE', stale, unpack(members))
for nth, member in ipairs(members) do
  local entry, due = entries[nth][1], entries[nth][2][4]
  local state = stateAt(entry, member, dues[nth], runOf(texts[nth]), lefts[nth])
  if state and dues[nth] and isMeant(dueOf(dues[nth])) then
    local where = isWaiting(dues[nth]) and 'waiting' or 'scheduled'
    counts[where] = counts[where] - 1
  end
  if state and isMeant(tonumber(due) or 0) then
    counts[state] = counts[state] + 1
    add(member, state, due)
  elseif state then
    seen[member] = true
  end
end
local function addAll(state, lowest, highest)
  local all = redis.call('ZRANGE', scheduled, lowest, highest, 'BYSCORE', 'WITHSCORES')
  for at = 1, #all, 2 do
    if not seen[all[at]] then
      add(all[at], state, dueText(all[at + 1]))
    end
  end
end
if isListed then
  addAll('scheduled', low, high)
  addAll('waiting', first, beyond)
end
local newest = last == '' and redis.call('XREVRANGE', ready, '+', '-', 'COUNT', 1)[1]
local nextPage = #entries == limit and entries[#entries][1] or ''
local isPaged, moves = nextPage ~= '' or not isFirst, {}
local words = isPaged and redis.call('HGETALL', meta) or {}
for at = 1, #words, 2 do
  local isMove = words[at] == 'token' or words[at]:find('^gate2?$') or words[at]:find('^n%.')
  moves[#moves + 1] = isMove and words[at] .. words[at + 1] or nil
end
return { 'count', counts.scheduled, counts.waiting, counts.ready, counts.running, nextPage,
  newest and newest[1] or last, isPaged and redis.sha1hex(table.concat(moves, ' ')) or '',
  unpack(found) }
