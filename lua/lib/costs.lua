-- costs: how many turns of its rates a job costs, in a queue whose jobs may cost more than one.
-- GIVES   costIn(keys, member): so many turns, and the bytes that were read for it; costsPast(keys,
--         gate, list): those of a list of jobs by their numbers there, and sum; nothing where one
--         of the list finds no turn; costWords(gate, cost): what an entry says of it, nothing where
--         each job costs one turn; chargesOf(ready, gate, entries, members, unused): what those
--         have used that unused names, as long as they are there; refund(meta, gate, count): so
--         many were used for nothing just now; ofNow(meta, gate, charges): those that were used of
--         the limits of now; giveBack(meta, gate, charges): of turns that were used then so many
--         stay used as left says, nil = none; giveOwnBack(keys, own, charge): the same of the rate
--         of a group; refundAll(keys, gate, charges): what these have used was for nothing
-- NEEDS   charge, line, gate, rates, own
-- RULE    The letter c of the header is the cost, in base 36; a job without it costs one, and
--         nobody more than 1,000. A job passes where one turn is free, and owes the rest: so a cost
--         above the burst starts too, and who comes next waits until what is owed is through. It
--         counts the same for each rate: both of a queue, and that of the group. What an entry has
--         used stands in it, and is what it gives back: its job may be over by then, or have
--         another record. Only what is not through yet is given back, as if none had been used
--         before: who came next has waited for the rest, or has started in its place. What was used
--         before the limits were set (gateSet of K:meta, us) stays used: at another rate nobody
--         knows how much of it is through. Those who go past the line read 1 MiB of records; who
--         reads more stands in line.
local function costIn(keys, member)
  local record = redis.call('HGET', keys.jobs, member) or ''
  local cost = tonumber(record:match('^1%w+[^|]-;c=(%w+)') or '', 36) or 1
  return math.max(1, math.min(1000, cost)), #record
end

local function costsPast(keys, gate, list)
  local turns, costs, bytes, size = allowed(keys.meta, gate), { sum = 0 }, 0, nil
  for nth, job in ipairs(list) do
    -- @finds-a-turn
    if costs.sum >= turns or bytes >= 1048576 then return nil end
    costs[nth], size = costIn(keys, job.member)
    costs.sum, bytes = costs.sum + costs[nth], bytes + size
  end
  return costs
end

local function costWords(gate, cost)
  if gate.hasCosts then return 'cost', ('%.0f %.0f'):format(cost, gate.micros) end
end

local function chargesOf(ready, gate, entries, members, unused)
  local charges = {}
  for nth, entry in ipairs(entries) do
    if unused[entry] then
      local found = gate.hasCosts and redis.call('XRANGE', ready, entry, entry)[1]
      local charge = chargeIn(entry, found and found[2] or {})
      charge.member = members[nth]
      charges[#charges + 1] = charge
    end
  end
  return charges
end

local function refund(meta, gate, count)
  -- @something-back
  if count > 0 and gate.interval > 0 then
    use(meta, gate, -math.min(count, math.floor(gate.arrival / gate.interval)))
  end
end

local function ofNow(meta, gate, charges)
  local kept = {}
  -- @without-charges
  if #charges == 0 or gate.interval == 0 and not gate.hasOwn then return kept end
  local since = tonumber(redis.call('HGET', meta, 'gateSet') or 0)
  for _, charge in ipairs(charges) do
    if charge.at >= since then
      kept[#kept + 1] = charge
    end
  end
  return kept
end

-- In us.
local function backOf(rate, charge)
  local through = math.max(0, rate.micros - placeFrom(rate, charge.at))
  local used = math.max(0, charge.turns * rate.interval - through)
  return used - math.max(0, (charge.left or 0) * rate.interval - through)
end

local function giveBack(meta, gate, charges)
  -- @nothing-back
  if gate.interval == 0 or #charges == 0 then return end
  for _, rate in ipairs(ratesIn(meta, gate)) do
    for _, charge in ipairs(charges) do
      rate.arrival = math.max(0, rate.arrival - backOf(rate, charge))
    end
  end
  keepRates(meta, gate)
end

local function giveOwnBack(keys, own, charge)
  -- @own-rate
  if own.interval > 0 then
    useOwn(keys, own, -backOf(own, charge) / own.interval)
  end
end

local function refundAll(keys, gate, charges)
  charges = ofNow(keys.meta, gate, charges)
  giveBack(keys.meta, gate, charges)
  for _, charge in ipairs(gate.hasOwn and charges or {}) do
    local group = groupIn(charge.member)
    if group ~= '' then
      giveOwnBack(keys, ownOf(keys, gate, group), charge)
    end
  end
end
