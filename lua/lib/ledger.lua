-- ledger: who has what of a limit that several queues share.
-- GIVES   bookOf(ledger, now, micros): {limit, gate, rows}; limit {revision, kind, pace, most} is
--         the latest that was told; gate is that of a rate, as turnsIn takes it; newRow(name): a
--         row that nobody wrote yet; tellLimit(ledger, book, limit): it holds from now on, if it is
--         later; turnsFor(book, mine, want): turns of the rate that are given; placesFor(book,
--         mine): lends places, and how many the row is asked to have; keepRow(ledger, book, mine):
--         writes it; activeIn(book): how many rows have asked within a second
-- NEEDS   gate
-- RULE    The field rule is the limit, gate the arrival of its rate, and every other field a row,
--         the name of a partition. A row is twelve numbers; its last two are the reply to its last
--         call. The rate is a GCRA with 100 ms of delay. The sum of all shares is never above the
--         limit, but where the limit has fallen; then nothing is lent until it is not.
local ROW = { 'epoch', 'seq', 'share', 'need', 'beat', 'asked', 'served', 'had', 'since', 'handsOn',
  'turns', 'target' }

local function newRow(name)
  local row = { name = name }
  for _, word in ipairs(ROW) do
    row[word] = 0
  end
  return row
end

local function paceOf(limit, now, micros, arrival)
  local tolerance = (limit.most - 1) * limit.pace + 100000
  return { interval = limit.pace, burst = limit.most, tolerance = tolerance, debt = 1, now = now,
    micros = micros or now * 1000, arrival = arrival }
end

local function bookOf(ledger, now, micros)
  local fields, book = redis.call('HGETALL', ledger), { rows = {}, now = now, micros = micros }
  local arrival, rule = 0, '0 n 0 1'
  for at = 1, #fields, 2 do
    local name, text = fields[at], fields[at + 1]
    if name == 'rule' then
      rule = text
    elseif name == 'gate' then
      arrival = tonumber(text) or 0
    else
      local row, nth = newRow(name), 0
      for word in text:gmatch('%S+') do
        nth = nth + 1
        row[ROW[nth] or 'more'] = tonumber(word) or 0
      end
      book.rows[name] = row
    end
  end
  local revision, kind, pace, most = rule:match('^(%d+) (%a) (%S+) (%d+)$')
  book.limit = { revision = tonumber(revision or 0), kind = kind or 'n', pace = tonumber(pace or 0),
    most = tonumber(most or 1) }
  book.gate = paceOf(book.limit, now, micros, arrival)
  return book
end

local function tellLimit(ledger, book, limit)
  local old, gate = book.limit, paceOf(limit, book.now, book.micros, 0)
  if limit.revision <= old.revision then return end
  local ahead = math.max(0, book.gate.arrival - book.gate.micros)
  local isRate = old.kind == 'r' and limit.kind == 'r'
  gate.arrival = isRate and gate.micros + aheadBy(gate, ahead, old.pace) or 0
  book.limit, book.gate = limit, gate
  redis.call('HSET', ledger, 'rule', ('%.0f %s %.3f %.0f'):format(limit.revision, limit.kind,
    limit.pace, limit.most), 'gate', ('%.2f'):format(gate.arrival))
end

local function activeIn(book)
  local active = 0
  for _, row in pairs(book.rows) do
    active = book.now - row.beat < 1000 and active + 1 or active
  end
  return active
end

local function turnsFor(book, mine, want)
  local free, rivals, isAfter = math.max(0, turnsIn(book.gate)), 0, false
  local window = 3 * math.max(50, 2 * activeIn(book))
  for _, row in pairs(book.rows) do
    if row ~= mine and book.now - row.asked < window then
      rivals = rivals + 1
      isAfter = isAfter or row.served < mine.served
    end
  end
  free = isAfter and math.floor(free / (rivals + 1)) or free
  local given = math.min(free, want)
  mine.asked = given < want and book.now or 0
  mine.served = given > 0 and book.now or mine.served
  book.gate.arrival = book.gate.arrival + given * book.gate.interval
  return given
end

local function placesFor(book, mine)
  local lent, hungry, starved, isAfter, now = 0, 0, false, false, book.now
  for _, row in pairs(book.rows) do
    local isHere = row.need > 0 and now - row.beat < 1000
    lent, hungry = lent + row.share, isHere and hungry + 1 or hungry
    if row ~= mine and isHere and row.share == 0 then
      starved, isAfter = true, isAfter or row.had < mine.had
    end
  end
  local room = book.limit.most - lent
  local fair = math.max(1, math.ceil(book.limit.most / math.max(1, hungry)))
  local isLast = mine.share == 0 and isAfter
  local more = isLast and 0 or math.min(mine.need - mine.share, room, fair - mine.share)
  mine.share = mine.share + math.max(0, more)
  mine.had = mine.share > 0 and now or mine.had
  mine.since = mine.share == 0 and 0 or mine.since > 0 and mine.since or now
  local isFull = room - math.max(0, more) <= 0
  local handsOn = mine.share > 0 and starved and isFull and now - mine.since > 500
  mine.handsOn = handsOn and 1 or mine.handsOn
  local target = isFull and math.min(mine.share, fair) or mine.share
  -- The limit has fallen: each gives back until the sum is right.
  target = room < 0 and math.max(0, math.min(target, mine.share + room)) or target
  return mine.handsOn == 1 and math.min(target, mine.share - 1) or target
end

local function keepRow(ledger, book, mine)
  local words, silent = {}, {}
  for nth, word in ipairs(ROW) do
    words[nth] = ('%.0f'):format(mine[word])
  end
  redis.call('HSET', ledger, mine.name, table.concat(words, ' '), 'gate',
    ('%.2f'):format(book.gate.arrival))
  for name, row in pairs(book.rows) do
    if row ~= mine and row.share == 0 and book.now - row.beat > 60000 then
      silent[#silent + 1] = #silent < 100 and name or nil
    end
  end
  if #silent > 0 then
    redis.call('HDEL', ledger, unpack(silent))
  end
end
