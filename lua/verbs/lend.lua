#!lua flags=allow-oom
-- lend: the leader of a partition asks the ledger of a limit that several queues share for turns of
-- a rate, or for places of a concurrency, and gives places back.
-- USES  clock, gate, ledger
-- KEYS  1 ledger
-- ARGV  1 now  2 row  3 epoch  4 seq  5 over  6 revision  7 kind  8 pace  9 most  10 want  11 need
--       12 back
--       now ms, '' = server time; row: queue:partition; epoch of the leader's term; seq: which of
--       its calls this is; with epoch 0 and seq 0 only the limit is told; over: the row may be
--       taken from that later epoch, '' = it may not; revision, kind, pace, most: the limit, as
--       the caller knows it: kind r = a rate with us per job and burst, c = a concurrency with most
--       places; want: turns; need: places, those that it has included; back: it has given places
--       up, and this many are left, '' = none
-- RETURN {ok, turns, share, target, kind, active}: share: so many places are lent, target: it is
--        asked to have no more than these; kind of the limit that holds; active: how many
--        partitions have asked within a second; {fenced, epoch, seq}: these were later;
--        {claim}: what the leader before has lent is not known to the caller: ask without back
-- The clock of the ledger alone counts. Turns go to whoever was served longest ago; where others
-- ask as well, one that was served after them gets a part. A partition has at least one place in
-- its turn: where there are fewer places than partitions that want one, a place is asked back after
-- half a second, and stays so until it is given. A row that has no places and was silent for a
-- minute goes.
local ledger = KEYS[1]
local now, micros = clock(ARGV[1])
local row, epoch, seq, over = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local revision, kind = tonumber(ARGV[6]), ARGV[7]
local pace, most = tonumber(ARGV[8]), tonumber(ARGV[9])
local want, need, back = tonumber(ARGV[10]), tonumber(ARGV[11]), tonumber(ARGV[12])

local book = bookOf(ledger, now, micros)
tellLimit(ledger, book, { revision = revision, kind = kind, pace = pace, most = most })
local mine = book.rows[row] or newRow(row)
book.rows[row] = mine
if epoch < mine.epoch and over ~= mine.epoch then return { 'fenced', mine.epoch, mine.seq } end
local isNext = epoch == mine.epoch
if isNext and seq < mine.seq then return { 'fenced', mine.epoch, mine.seq } end
if isNext and seq == mine.seq then
  return { 'ok', mine.turns, mine.share, mine.target, book.limit.kind, activeIn(book) }
end
if not isNext and back then return { 'claim' } end
mine.epoch, mine.seq, mine.beat, mine.need = epoch, seq, now, need
if back and back < mine.share then
  mine.share, mine.handsOn, mine.since = back, 0, now
end
mine.turns = book.limit.kind == 'r' and turnsFor(book, mine, want) or 0
mine.target = book.limit.kind == 'c' and placesFor(book, mine) or 0
keepRow(ledger, book, mine)
return { 'ok', mine.turns, mine.share, mine.target, book.limit.kind, activeIn(book) }
