-- digits: whole numbers as texts of base 36.
-- GIVES   base36(number)
-- RULE    0 is an empty text, so that zeros can be put in front of any number.
local function base36(number)
  local text = ''
  -- @endless
  while number > 0 do
    local digit = number % 36
    text = ('0123456789abcdefghijklmnopqrstuvwxyz'):sub(digit + 1, digit + 1) .. text
    number = (number - digit) / 36
  end
  return text
end
