// Package serve is the bot as one program: it reads a configuration, opens the
// journal and the ledger, listens for webhooks and runners, starts a runner of its
// own, and stops all of them in an order that loses nothing. It decides nothing
// about a change: package keeper does.
package serve
