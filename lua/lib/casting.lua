-- casting: due members of scheduled become entries of cast, and are over.
-- GIVES   castDue(keys, call, limit): one pass. `call` is {now, window, count, total, moved,
--         letters, lateness}, of which all but the first two grow
-- NEEDS   tombstone, tags, end-tags, past, cast-one, cast-entries, weight, telling
-- RULE    Entries are added before the members read are removed, a step at a time. As in promote, a
--         pass ends when one more as large as the largest would take it over 1 MiB; the first is
--         always taken.
local function endAll(keys, call, list)
  local tombstones, times, members, ends = {}, {}, {}, { d = 0, c = 0, e = 0, x = 0 }
  local bytes = 0
  for _, job in ipairs(list) do
    local size, run, letter = #tombstones, job.run, job.deadLetter
    job.mark, members[#members + 1] = markOf(job.record), job.member
    tombstones[size + 1] = job.member
    tombstones[size + 2] = tombstoneText(job.outcome, job.mark, run.token, run.attempts, letter)
    times[size + 1], times[size + 2] = ('%.0f'):format(call.now), job.member
    ends[job.outcome], bytes = ends[job.outcome] + 1, bytes + #job.record
  end
  if keys.past then
    keepPast(keys.past, keys.ended, call.now, list)
  end
  if call.window > 0 then
    redis.call('ZADD', keys.done, unpack(times))
    redis.call('HSET', keys.jobs, unpack(tombstones))
  else
    redis.call('HDEL', keys.jobs, unpack(members))
  end
  local names = { d = 'n.done', c = 'n.cancelled', e = 'n.expired', x = 'n.dead' }
  for outcome, name in pairs(names) do
    if ends[outcome] > 0 then
      redis.call('HINCRBY', keys.meta, name, ends[outcome])
    end
  end
  redis.call('HDEL', keys.runs, unpack(members))
  reweigh(keys.meta, -bytes, -#members)
  for _, job in ipairs(list) do
    endTags(keys, call.now, job.member, tagsOf(job.record), job.outcome)
    tellEnd(keys.meta, job.run, job.member, job.outcome)
  end
end

local function castDue(keys, call, limit)
  local now, bytes, largest, step, taken, more = ('%.0f'):format(call.now), 0, 1, 1, 0, true
  -- @endless-casts
  while more do
    step = math.min(step * 2, 12, math.max(1, math.floor((1048576 - bytes) / largest)))
    local found = redis.call('ZRANGEBYSCORE', keys.scheduled, '-inf', now, 'WITHSCORES',
      'LIMIT', 0, step)
    local list, gone = {}, {}
    call.adopted = 0
    -- @endless-found
    more = #found == 2 * step
    for at = 1, #found, 2 do
      local member = found[at]
      local size = #member + redis.call('HSTRLEN', keys.jobs, member)
      largest = math.max(largest, size)
      -- @room-left
      if taken == limit or taken > 0 and bytes + largest > 1048576 then
        more = false
        break
      end
      taken, bytes = taken + 1, bytes + size
      local fate, job = judgeCast(keys, call, member, tonumber(found[at + 1]))
      list[#list + 1] = job
      gone[#gone + 1] = fate ~= 'waits' and member or nil
    end
    if call.adopted > 0 then
      redis.call('HINCRBY', keys.meta, 'n.adopted', call.adopted)
    end
    if #list > 0 then
      addEntries(keys, call, list)
      endAll(keys, call, list)
    end
    if #gone > 0 then
      redis.call('ZREM', keys.scheduled, unpack(gone))
    end
  end
end
