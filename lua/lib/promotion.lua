-- promotion: due members of scheduled become entries of ready; bare members get a record; nonsense
-- becomes dead letters.
-- GIVES   promoteDue(keys, state, now, limit, cap, gate, ...): what promote replies, and the first
--         entry that was added; state is token, paused, wake and n.promoted of K:meta; gate is nil,
--         or that of a gated queue with `wanted`: so many may be let through, and `lineMax`; other
--         fields of K:meta that are to be written when something has moved come last, with values
-- NEEDS   group, odd-member, advertise, opening, lining-up, letting-through, line, rates
-- RULE    A worker reads ready with src/worker/fetch/stream-fetcher.ts, in a cluster with
--         polling-fetcher.ts. Entries are added before exactly the ids read are removed. Most
--         passes move one job: so the first read is of two members, whether they are due or not,
--         and the second is often the next due time. Most members are plain, ours with a due time
--         of thirteen digits: they are taken as they are, with the due time as the text that Redis
--         gave. Then four, eight and twelve members are read at a time, fewer where they are large,
--         and a pass ends when one more as large as the largest would take it over 1 MiB of them
--         and of records that become dead letters. The first is always taken; what is due then
--         waits for the next pass. In a gated queue they wait in line, however many there are in
--         ready; only who finds no line goes past it. In a line of more than 100,000 each job costs
--         several times as much, so a pass takes fewer.
local function promoteDue(keys, state, now, limit, cap, gate, ...)
  local paused, advertised, promoted = state[2], state[3], state[4]
  local backlog, through, batch = undeliveredIn(keys.ready, gate and 1 or cap), 0, {}
  local space = gate and gate.lineMax - redis.call('ZCARD', keys.line) or cap - backlog
  -- @long-line
  local isLong = gate and gate.lineMax - space > 100000
  local room = paused and 0 or math.min(isLong and 80 or limit, space)
  local taken, bytes, largest, step, moved, deadLetters, adopted = 0, 0, 1, 1, 0, 0, 0
  local reply, late, at, waits, first = { 'moved', now, '', 0, 0, 0, 0, -1 }, nil, 0, false, nil

  -- Made once a call: producers of other languages have many odd members, and a gated queue steps.
  local gone, judgeOdd, admitDue

  local function give(member, due, text)
    if gate then
      batch[#batch + 1] = { member = member, due = due, text = text }
    else
      local entry = addReady(keys.ready, member, text)
      first, gone[#gone + 1] = first or entry, member
    end
    moved = moved + 1
    if due ~= late then
      late, at = due, #reply + 2
      reply[at - 1], reply[at] = now - due, 0
    end
    reply[at] = reply[at] + 1
  end

  local function odd(member, score)
    if not judgeOdd then
      --@lazy
      judgeOdd = settleOdd
    end
    local fate, value = judgeOdd(keys, now, member, score)
    if fate == 'buried' then
      bytes, deadLetters = bytes + value, deadLetters + 1
    elseif fate == 'waits' then
      waits = true
    else
      adopted = adopted + (fate == 'adopted' and 1 or 0)
      give(member, value, ('%.0f'):format(value))
    end
    return fate == 'buried'
  end

  -- @room
  local more, isKnown, head, text, due = room > 0, false, nil, nil, nil
  -- @endless-steps
  while more do
    step = math.min(step * 2, 12, math.max(1, math.floor((1048576 - bytes) / largest)))
    gone = {}
    local found = taken == 0
      and redis.call('ZRANGE', keys.scheduled, 0, step - 1, 'WITHSCORES')
      or redis.call('ZRANGEBYSCORE', keys.scheduled, '-inf', now, 'WITHSCORES', 'LIMIT', 0, step)
    -- @endless-more
    more = #found == 2 * step
    isKnown = taken == 0 and not more
    -- @move-each
    for nth = 1, #found, 2 do
      local member = found[nth]
      due, text = found[nth + 1] == text and due or tonumber(found[nth + 1]), found[nth + 1]
      largest = math.max(largest, #member)
      if due > now or taken == room or taken > 0 and bytes + largest > 1048576 then
        head, isKnown, more = due, true, false
        break
      end
      taken, bytes = taken + 1, bytes + #member
      -- @plain
      if #text == 13 and due >= 1e12 and #member <= 200 and member:find('^j:[!-~]*$') then
        give(member, due, text)
      elseif odd(member, due) then
        gone[#gone + 1] = member
      end
    end
    if #batch > 0 then
      if not admitDue then
        --@lazy
        admitDue = admit
      end
      through = through + admitDue(keys, gate, batch, gate.wanted - backlog - through, gone)
      batch = {}
    end
    if #gone > 0 then
      -- @remove-moved
      redis.call('ZREM', keys.scheduled, unpack(gone))
    end
  end
  ensureGroup(keys.ready, gate and backlog or backlog + moved)
  if not isKnown or waits then
    head = tonumber(redis.call('ZRANGE', keys.scheduled, 0, 0, 'WITHSCORES')[2])
  end
  if gate then
    --@lazy
    local isOpen, look = openTimed(keys, gate), nil
    -- @ring
    if isOpen and not paused and backlog + through < gate.wanted then
      local given, isCut = letThrough(keys, gate, gate.wanted - backlog - through)
      through, look = through + given, isCut and now or nil
    end
    -- @has-rate
    if isOpen and gate.interval > 0 then
      look = look or nextTurnMs(keys.meta, gate)
    end
    -- @is-closed
    if gate.queueClosed > now then
      look = gate.queueClosed
    end
    -- @any-lanes
    local opens = redis.call('ZCARD', keys.lanes) > 0 and nextTimed(keys.lanes)
    if opens then
      look = math.min(look or opens, math.max(opens, gate.queueClosed))
    end
    head = not isWaiting(head) and head or nil
    head = look and math.min(head or look, look) or head
    backlog = backlog + through - moved
    reply[7], reply[8] = through, redis.call('ZCARD', keys.line)
  end

  head = head and ('%.0f'):format(math.ceil(math.max(0, math.min(head, 9007199254740991)))) or ''
  local look = room <= 0 and '0' or head ~= '' and head or '9007199254740991'
  advertise(keys.meta, look, advertised, moved, promoted, ...)
  if adopted > 0 then
    redis.call('HINCRBY', keys.meta, 'n.adopted', adopted)
  end
  reply[1] = room > 0 and 'moved' or paused and 'paused' or 'capped'
  reply[3], reply[4], reply[5], reply[6] = head, backlog + moved, deadLetters, moved
  return reply, first
end
