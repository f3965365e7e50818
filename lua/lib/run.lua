-- run: the state of a job that was started, as `K:runs` keeps it, by name.
-- GIVES   runOf(text): its fields, or nil when there is none; runText(run): the text again;
--         unboundText(run, due): the same without entry and owner; firstStart(token, entry,
--         owner, due): the text of a job that is started for the first time, and held until due;
--         freshRun(...): for a new life; NEVER_RAN: for a job that was never started; RUN, CLAIM,
--         ENDING: patterns, for a flat parse; hasBit, withBit and withoutBit(cancel, bit) and the
--         bits of cancel: STOP, its worker is to stop; AGAIN, newer data came since its start;
--         WAITED, somebody waits for the end of the job; onlyWaited(cancel): without the first two
-- RULE    Nothing else knows the order of the fields. All are texts; entry, owner and due are -
--         where there is none. The history is one line of JSON per error, see history. A start
--         keeps WAITED alone; so does the life that follows a run with newer data; any other new
--         life has none.
local NEVER_RAN = '0 0 0 0 0 - - - 0'
local RUN = '^(%d+) (%d+) (%d+) (%d+) (%d+) (%S+) (%S+) (%S+) (%d)(.*)$'

-- For calls with many jobs: token, entry, owner and cancel; token, attempts, entry and cancel.
local CLAIM = '^(%d+) %d+ %d+ %d+ %d+ (%S+) (%S+) %S+ (%d)'
local ENDING = '^(%d+) %d+ (%d+) %d+ %d+ (%S+) %S+ %S+ (%d)'

local STOP = 1
local AGAIN = 2
local WAITED = 4

local function hasBit(cancel, bit)
  return math.floor(cancel / bit) % 2 == 1
end

local function withBit(cancel, bit)
  return hasBit(cancel, bit) and cancel or cancel + bit
end

local function withoutBit(cancel, bit)
  return hasBit(cancel, bit) and cancel - bit or cancel
end

local function onlyWaited(cancel)
  return hasBit(cancel, WAITED) and WAITED or 0
end

local function runOf(text)
  local token, generation, attempts, failures, crashes, entry, owner, due, cancel, history =
    (text or ''):match(RUN)
  return token and {
    token = token,
    generation = generation,
    attempts = attempts,
    failures = failures,
    crashes = crashes,
    entry = entry,
    owner = owner,
    due = due,
    cancel = cancel,
    history = history,
  }
end

local function runText(run)
  return table.concat({ run.token, run.generation, run.attempts, run.failures, run.crashes,
    run.entry, run.owner, run.due, run.cancel }, ' ') .. run.history
end

local function firstStart(token, entry, owner, due)
  return token .. ' 0 1 0 0 ' .. entry .. ' ' .. owner .. ' ' .. (due or '-') .. ' 0'
end

local function freshRun(token, generation, attempts, due, cancel)
  return ('%s %d %s 0 0 - - %s %d'):format(token, generation, attempts, due, cancel or 0)
end

local function unboundText(run, due)
  run.entry, run.owner, run.due = '-', '-', due
  return runText(run)
end
