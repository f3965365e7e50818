-- keeping: in a queue in strict order, which job has a group. Who was let through is its keeper,
-- and has it until it is over.
-- GIVES   keptIn(keys, names): what K:order says of groups, by their names; keeperNamed(value): the
--         keeper that such a value names, or who is the dead letter that holds the group;
--         livesIn(jobs, member): whether its job lives;
--         keeperOf(keys, gate, value): nothing, where nobody has the group any more; else member,
--         nothing for a dead letter, and due, if it may be let through now, or opensAt, when it is
--         to be looked at again, ms; keepHead(keys, gate, head, value): the head of a lane is the
--         keeper of its group and nobody else, or nobody
-- NEEDS   tombstone, line
-- RULE    K:order has the keeper by the name of its group; a mark, the dead letter, a space and
--         its member while a dead letter holds the group. It is an index: a keeper counts as long
--         as its job lives, so an end that forgets to take it out does no harm. Where it is
--         nobody else says: a retry, a pause, a worker that is lost and a take-back keep the group
--         without a word. A keeper that is due and not in line is let through all the same: a line
--         that is full of jobs of its group takes in nobody, and would stand still for ever. What
--         looks so odd that only promote can judge it, waits for that.
local function keptIn(keys, names)
  local kept, asked = {}, {}
  for _, group in ipairs(names) do
    if group ~= '' and kept[group] == nil then
      kept[group], asked[#asked + 1] = false, group
    end
  end
  if #asked == 0 then return kept end
  for nth, value in ipairs(redis.call('HMGET', keys.order, unpack(asked))) do
    kept[asked[nth]] = value
  end
  return kept
end

local function keeperNamed(value)
  return value:match('^!%S+ (.*)$') or value
end

local function livesIn(jobs, member)
  local tombstone, length = tombstoneOf(jobs, member)
  return length > 0 and not tombstone
end

local function keeperOf(keys, gate, value)
  if value:byte() == 33 then return gate.holdsDead and { opensAt = gate.now + 60000 } or nil end
  if not livesIn(keys.jobs, value) then return nil end
  local text = redis.call('ZSCORE', keys.scheduled, value)
  local score = tonumber(text or nil)
  if isWaiting(score) then return { member = value, due = dueOf(score) } end
  local isSoon = not score or score <= gate.now
  local isPlain = text and text:find('^' .. ('%d'):rep(13) .. '$')
  if isSoon and isPlain then return { member = value, due = score } end
  return { member = value, opensAt = isSoon and gate.now + 1000 or math.ceil(score) }
end

local function keepHead(keys, gate, head, value)
  local keeper = keeperOf(keys, gate, value)
  if not keeper then return end
  head.opensAt = keeper.opensAt
  if keeper.due then
    head.keeps = placeOf(head.group, 1, keeper.due, keeper.member)
  else
    head.free, head.isTimed = 0, false
  end
end
