-- starting: entries that a consumer holds become running jobs, each with a token of its own. Lets
-- exactly one of several entries of a member through.
-- GIVES   callOf(state, now, micros, consumer, bytes, window, suspects, count): what a call knows
--         of its partition; state is token and paused of K:meta, count the most entries there may
--         be, the rest is as the scripts say;
--         startEntries(keys, call, entries, isGiven, first): entries has entry, member and due of
--         each, ascending; isGiven: an earlier call delivered them, and the consumer may have lost
--         them since; else this very script did, and first is the entry from which on all were
--         added there as well, and so are not in scheduled and have their holds. What became of
--         each is added to call.started or call.others, as start replies it
-- NEEDS   run, mint, costs, leaving, start-one, offered
-- RULE    In a gated queue an entry that is turned away gives its turn of the rate back, and one
--         that is started has its hold, whatever became of that before. Records are read one, two,
--         four and then eight at a time, fewer where they are large, until one more as large as the
--         largest would take the call over `bytes`; what is left is `later`. The first is always
--         read. A record above 1 KiB is a text of its own in call.started: Lua copies and hashes
--         each byte of what it joins, and below that a text more costs the caller as much.
-- RULE    A job that was offered before it is due is held by its worker until then: its run has
--         that due time.
-- RULE    Who holds a given entry is not asked where Redis itself added the entry less than 100 ms
--         ago. Another worker takes over only what is idle for its job lease, which is 100 ms at
--         least, by that same clock; and an entry is read after it was added. So it does not matter
--         how long the call was on its way. An entry that is later than now is asked about, because
--         the clock went back, and so is each that does not start plainly. An entry that a person
--         took away by hand in that time starts, and the start of whoever has it then fences it.
local function callOf(state, now, micros, consumer, bytes, window, suspects, count)
  local token = math.max((tonumber(state[1]) or 0) + 1, micros)
  local call = { now = now, token = token, isPaused = state[2], count = count }
  call.consumer, call.bytes, call.window, call.suspects = consumer, bytes, window, suspects
  call.spent, call.largest, call.step = 0, 1, 0.5
  call.started, call.others, call.gone, call.left, call.unused = {}, {}, {}, {}, {}
  return call
end

-- Idle ms by entry, of those that it holds; nil: all are so young that it holds them.
local function heldSince(ready, call, entries, isAsked)
  local from, to = entries[1], entries[#entries - 2]
  -- @so-young
  local isYoung = call.now - from:match('^%d+') < 100 and to:match('^%d+') - call.now <= 0
  -- @not-asked
  if isYoung and not isAsked then return nil end
  local idle, most = {}, #entries / 3 + 100
  for _, one in ipairs(redis.call('XPENDING', ready, 'workers', from, to, most, call.consumer)) do
    idle[one[1]] = one[3]
  end
  return idle
end

local function startEntries(keys, call, entries, isGiven, first)
  local idle = isGiven and heldSince(keys.ready, call, entries)
  local started, writes, members, seen, from, begun = call.started, {}, {}, {}, 1, {}
  local startOdd, old, begins = nil, nil, {}
  for at = 2, #entries, 3 do
    old = old or entries[at - 1] == first and #members
    members[#members + 1] = entries[at]
  end
  local known = redis.call('HMGET', keys.runs, unpack(members))
  local again = old == 0 and {}
    or redis.call('ZMSCORE', keys.scheduled, unpack(members, 1, old or #members))
  local function write()
    if #writes > 0 then
      redis.call('HSET', keys.runs, unpack(writes))
    end
    -- @some-begin
    if #begins > 0 then
      -- @begins
      redis.call('ZREM', keys.scheduled, unpack(begins))
    end
    writes, begins = {}, {}
  end
  local function start(entry, member, due, record, isFirst, offer)
    -- @young
    local isYoung = not idle or (idle[entry] or math.huge) < 1000
    -- A header without fields: it is of a version that can be read, and cannot be late. A member
    -- with a space would make a text of more parts.
    local isPlain = isFirst and isYoung and not seen[member] and record and not call.isPaused
      and record:find('^1%w+|') and not member:find(' ', 1, true)
    if isPlain then
      local token = mint(keys, call)
      -- @until-due
      local heldUntil = offer and tonumber(due) > call.now and due
      local run = firstStart(token, entry, call.consumer, heldUntil)
      writes[#writes + 1], writes[#writes + 2] = member, run
      begins[#begins + 1] = offer and member or nil
      local words = entry .. ' ' .. due .. ' ' .. token .. ' ' .. member
      -- @apart
      if #record > 1024 then
        started[#started + 1], started[#started + 2] = words, record
      else
        started[#started + 1] = words .. ' ' .. record
      end
      begun[#begun + 1], begun[#begun + 2] = entry, member
    else
      write()
      -- Its other entry, of this very call, may have ended it.
      if seen[member] then
        record = redis.call('HGET', keys.jobs, member)
      end
      if not startOdd then
        --@lazy
        startOdd = startOne
      end
      idle = idle or isGiven and heldSince(keys.ready, call, entries, true)
      startOdd(keys, call, entry, member, due, record, idle, offer)
      -- @started-odd
      if call.others[#call.others][4] == 'run' then
        begun[#begun + 1], begun[#begun + 2] = entry, member
      end
    end
    seen[member] = true
  end
  while from <= #members and (call.spent == 0 or call.spent + call.largest <= call.bytes) do
    call.step = math.min(8, call.step * 2)
    local room = math.max(1, math.floor((call.bytes - call.spent) / call.largest))
    local to = math.min(#members, from + math.min(call.step, room) - 1)
    for index, record in ipairs(redis.call('HMGET', keys.jobs, unpack(members, from, to))) do
      local nth = from + index - 1
      local size = record and #record or 0
      call.spent, call.largest = call.spent + size, math.max(call.largest, size)
      local entry, due, offer = entries[3 * nth - 2], entries[3 * nth], nil
      if call.ahead then
        --@lazy
        offer = offerOf(entry, due, again[nth])
        -- @is-offer
        again[nth] = offer == 'void' or not offer and again[nth]
      end
      start(entry, entries[3 * nth - 1], due, record, not (known[nth] or again[nth]), offer)
    end
    from = to + 1
  end
  write()
  for at = 3 * from - 2, #entries, 3 do
    call.others[#call.others + 1] = { entries[at], entries[at + 1], entries[at + 2], 'later' }
  end
  local charges
  if call.gate and call.gone[1] then
    --@lazy
    charges = chargesOf(keys.ready, call.gate, call.gone, call.left, call.unused)
  end
  leaveReady(keys, call.gate, call.gone, call.left, 'ask')
  if call.gate then
    --@lazy
    refundAll(keys, call.gate, charges or {})
    holdAll(keys.holds, begun, first)
  end
  call.gone, call.left, call.unused = {}, {}, {}
end
