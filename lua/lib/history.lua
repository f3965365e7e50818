-- history: the errors of a job, the newest five, how often its handler put it aside, and how far
-- the attempt that runs is.
-- GIVES   withoutProgress(history): the history, or a text that ends with one, without that line;
--         lengthened(history, error, keepsAll): the history with one more line of JSON;
--         countFailure(run, error, keepsAll): the same of a run, which has failed once more;
--         countDeferral(run, reason, now): it was put aside once more, the last time for that
--         reason; '' = its worker gave it back, which is told and not counted
-- RULE    However often a job fails, its run and its dead letter stay small: only the newest stack
--         stays, unless the queue keeps a history (keepsAll). The stack comes last in a line, so
--         that it is found without parsing. The line of deferrals begins with ~ and their number,
--         and comes first. The line of progress comes last and goes with the next error, so it
--         never counts among the five; where a job ends or waits without an error it stays, and
--         readers leave it out. A start costs one budget: where a crash was counted, no failure
--         is. What a worker refused to start has not failed. The line of deferrals is the JSON of
--         the last one, with the four before it in e, the newest first; quotes inside of texts are
--         escaped, so no text has the words by which it is taken apart.
local function withoutProgress(history)
  return (history:gsub('\n{"t":%d+,"a":%d+,"k":"progress"[^\n]*', ''))
end

local function lengthened(history, error, keepsAll)
  local aside, errors = history:match('^(\n~[^\n]*)(.*)$')
  errors = withoutProgress(errors or history)
  if not keepsAll and error:find(',"s":"', 1, true) then
    errors = errors:gsub(',"s":"[^\n]*"}', '}')
  end
  errors = errors .. '\n' .. error
  while select(2, errors:gsub('\n', '')) > 5 do
    errors = errors:gsub('^\n[^\n]*', '', 1)
  end
  return (aside or '') .. errors
end

local function countFailure(run, error, keepsAll)
  run.history = lengthened(run.history, error, keepsAll)
  if run.owner ~= '-' and not error:find('"k":"refused"', 1, true) then
    run.failures = run.failures + 1
  end
end

local function countDeferral(run, reason, now)
  local times, last, errors = run.history:match('^\n~(%d+) ([^\n]*)(.*)$')
  local own, before = (last or ''):match('^(.*),"e":%[(.*)%]}$')
  local earlier, at = own and own .. '},' .. before or last, 0
  for _ = 1, 4 do
    at = at and earlier and earlier:find('},{"', at + 1, true)
  end
  earlier = at and earlier:sub(1, at) or earlier
  local count = (times or 0) + (reason == '' and 0 or 1)
  if reason == '' then
    reason = ('{"t":%.0f,"m":"worker %s stopped","k":"back","w":"%s"}')
      :format(now, run.owner, run.owner)
  end
  local list = earlier and ',"e":[' .. earlier .. ']' or ''
  local line = '{"a":' .. run.attempts .. ',' .. reason:sub(2, -2) .. list .. '}'
  run.history = ('\n~%d '):format(count) .. line .. (errors or run.history)
end
