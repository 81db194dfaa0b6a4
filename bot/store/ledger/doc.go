// Package ledger answers questions about changes and runs across all of them:
// what is open, what was tried before, how a kernel's speed went. It is a SQLite
// projection of the journal's events and decides nothing: whoever acts on a
// change reads its events from the journal.
//
// Every row follows from events. The sequence of the last event is written in the
// transaction that writes the rows, so after a crash the ledger goes on where it
// was, and a ledger that is damaged, of another version, or of another journal is
// built anew. Deleting the file does no harm.
package ledger
