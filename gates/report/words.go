package report

import "strings"

// Escape makes anybody's words safe and literal anywhere in a line of Markdown:
// they ping nobody, link nothing, and end no cell, line or hidden comment.
func Escape(s string) string { return escape(Plain(s)) }

// EscapeProse is Escape for a sentence in which a pair of backticks sets code
// apart.
func EscapeProse(s string) string { return markdownLine(prose(s)) }

// EscapeCode sets words apart as code, whatever they hold.
func EscapeCode(s string) string { return escapeCode(Plain(s), false) }

// EscapeSummary is Escape for the summary of folded details, which is HTML.
func EscapeSummary(s string) string { return escapeSummary(strings.TrimSpace(s)) }

// Plain makes any string one line of visible text, for places that show text as
// it is, such as a check's title. In Markdown it is not safe.
func Plain(s string) string { return strings.TrimSpace(clean(s)) }

// Clip ends a text that is longer than so many characters with an ellipsis.
func Clip(s string, runes int) string { return clip(s, runes) }
