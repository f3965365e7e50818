-- completion: running jobs are over; a tombstone is left for the done window.
-- GIVES   completeAll(keys, call, words, from, to): one text per job: ok | cancelled (a cancel was
--         requested, it ends cancelled) | already | fenced | gone; and whether all are ok. `call`
--         is {now, window, isHeld, consumer, sum, gate}, `words` holds entry, member, token and
--         mark for each, the mark with a bar and its tags behind it if it has any, a bar alone if
--         nothing is to be kept, or '': the record is read for them, and so it is where a cancel
--         was requested: newer data may have come before it, which no worker knows.
-- NEEDS   run, tombstone, again, end-mark, repeated, end-many
-- RULE    Only the newest token and its entry count. A member that is in scheduled meanwhile (a
--         foreign producer put it again) stays live. Only this very call once more is `already`:
--         if the entry was handed back meanwhile, it is `fenced`. Never needs memory that a full
--         Redis would refuse. Where past is named, a line break and the note of the worker follow
--         the mark.
local function completeAll(keys, call, words, from, to)
  local members, seen, replies, areOk = {}, {}, {}, true
  local tombstones, times, over, drop, gone, held = {}, {}, {}, {}, {}, {}
  local left, told, again = {}, {}, {}
  local ends, kept, tagged = { done = 0, cancelled = 0, adopted = 0 }, {}, {}
  for at = from + 1, to, 4 do
    members[#members + 1] = words[at]
  end
  if #members == 0 then return replies, true end
  local found = redis.call('HMGET', keys.runs, unpack(members))
  local waits = redis.call('ZMSCORE', keys.scheduled, unpack(members))
  for index, member in ipairs(members) do
    local at = from + 4 * index - 4
    local entry, token, mark = words[at], words[at + 2], words[at + 3]
    local text, isAgain, reply, note = found[index], waits[index], 'ok', ''
    local last, attempts, here, cancel = token, '1', entry, '0'
    if text ~= firstStart(token, entry, call.consumer) then
      last, attempts, here, cancel = (text or ''):match(ENDING)
    end
    if seen[member] or not last then
      --@lazy
      reply = completedBefore(keys, call, entry, member, token, seen[member] == token)
    elseif last ~= token or here ~= entry then
      -- Else newer data came for the run that this very call has ended.
      -- @lives-on
      local isOld = last ~= token or attempts ~= '0'
      reply = isOld and 'fenced' or 'already'
    else
      local isCancelled, livesOn, goesOn = false, false, isAgain
      if cancel ~= '0' then
        --@lazy
        local run = runOf(text)
        isCancelled, livesOn = hasBit(cancel, STOP), hasNews(run)
        goesOn = isAgain or livesOn
        again[#again + 1] = livesOn and { member = member, run = run } or nil
        told[#told + 1] = not goesOn and { member = member, cancel = cancel, token = token,
          outcome = isCancelled and 'c' or 'd' } or nil
        mark = isCancelled and (mark:match('\n.*') or '') or mark
      end
      local isHeld = call.isHeld and not isCancelled and not goesOn
      reply = isCancelled and 'cancelled' or 'ok'
      local counter = isCancelled and 'cancelled' or 'done'
      ends[counter] = ends[counter] + 1
      -- Nearly all marks stand alone.
      if not isAgain and not mark:find('^[^|\n]+$') then
        -- @kept-mark
        local isKept, tags = keys.past or isHeld or call.window > 0, nil
        mark, tags, note = endMark(keys.jobs, member, mark, isKept)
        tagged[member] = not livesOn and tags and counter:sub(1, 1) .. tags or nil
      end
      if keys.past and not isAgain then
        kept[#kept + 1] = { member = member, outcome = counter:sub(1, 1), mark = mark,
          note = note, run = runOf(text) }
      end
      if goesOn then
        ends.adopted = ends.adopted + (livesOn and 0 or 1)
      elseif isHeld or call.window > 0 then
        tombstones[#tombstones + 1] = member
        tombstones[#tombstones + 1] = tombstoneText(counter:sub(1, 1), mark, token, attempts)
        if not isHeld then
          times[#times + 1], times[#times + 2] = call.now, member
        end
      else
        drop[#drop + 1] = member
      end
      seen[member], over[#over + 1] = token, not livesOn and member or nil
      gone[#gone + 1], left[#left + 1] = not isHeld and entry or nil, not isHeld and member or nil
      held[#held + 1] = isHeld and member or nil
    end
    replies[index], areOk = reply, areOk and reply == 'ok'
  end
  local all = { kept = kept, tombstones = tombstones, times = times, ends = ends }
  all.drop, all.tagged, all.over, all.gone, all.held = drop, tagged, over, gone, held
  all.left, all.told, all.again = left, told, again
  writeEnds(keys, call, all)
  return replies, areOk
end
