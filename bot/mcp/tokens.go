package mcp

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/kernelgate/kernelgate/policies/ident"
	"github.com/kernelgate/kernelgate/policies/usage"
)

// Tokens are those who may ask, by name. Submissions and budgets belong to names, so that a new secret
// keeps them.
type Tokens map[string]Token

// A Token is the secret of one owner and, on the server of a bot, the repositories that it may ask about.
type Token struct {
	Secret       string
	Repositories []string // owner/name; "*" is all
}

// minToken is the length of the shortest secret, and maxTokens how many there may be.
const (
	minToken  = 16
	maxTokens = 1000
)

// ReadTokens reads a file with a name and a secret in each line, and behind them the repositories if the server
// has several. Empty lines and lines that begin with # say nothing.
func ReadTokens(file string, repositories bool) (Tokens, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, usage.Errorf("reading the tokens: %w", err)
	}
	tokens, owners := Tokens{}, map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		bad := func(format string, args ...any) error {
			return usage.Errorf("%s:%d: %s", file, n, fmt.Sprintf(format, args...))
		}
		example := strings.Repeat("x", minToken)
		switch {
		case !repositories && len(words) != 2:
			return nil, bad("a line has a name and a token (write e.g. agent1 %s)", example)
		case repositories && len(words) < 3:
			return nil, bad("a line has a name, a token and the repositories that it may ask about (write e.g. agent1 %s owner/name)", example)
		case !ident.IsName(words[0]):
			return nil, bad("%q is not a name (write letters, digits, '.', '_' and '-')", words[0])
		case tokens[words[0]].Secret != "":
			return nil, bad("the name %s is there twice", words[0])
		case len(words[1]) < minToken:
			return nil, bad("the token of %s has %d characters (at least %d)", words[0], len(words[1]), minToken)
		case owners[words[1]] != "":
			return nil, bad("%s and %s have the same token", owners[words[1]], words[0])
		case len(tokens) == maxTokens:
			return nil, bad("there are more than %d tokens", maxTokens)
		}
		for _, repo := range words[2:] {
			if repo != "*" && !ident.IsRepository(repo) {
				return nil, bad("%q is not a repository (write owner/name, or * for all)", repo)
			}
		}
		tokens[words[0]], owners[words[1]] = Token{words[1], words[2:]}, words[0]
	}
	if err := lines.Err(); err != nil {
		return nil, usage.Errorf("reading the tokens: %s: %w", file, err)
	}
	if len(tokens) == 0 {
		return nil, usage.Errorf("%s has no tokens (write a name and a token in each line)", file)
	}
	return tokens, nil
}

// May tells whether the token of an owner is for a repository.
func (t Tokens) May(owner, repo string) bool {
	return slices.ContainsFunc(t[owner].Repositories, func(r string) bool { return r == "*" || strings.EqualFold(r, repo) })
}

// owner compares digests with all tokens in constant time, so that timing reveals nothing.
func (t Tokens) owner(secret string) (name string) {
	given := sha256.Sum256([]byte(secret))
	for owner, token := range t {
		own := sha256.Sum256([]byte(token.Secret))
		if subtle.ConstantTimeCompare(given[:], own[:]) == 1 {
			name = owner
		}
	}
	return name
}

// A TokenFile is the tokens of a file for a server with several repositories, as the file has them now.
type TokenFile struct {
	file string
	log  *slog.Logger

	mu     sync.Mutex
	tokens Tokens
	seen   os.FileInfo
}

// OpenTokens reads the file, and reads it again whenever it has changed.
func OpenTokens(file string, log *slog.Logger) (*TokenFile, error) {
	f := &TokenFile{file: file, log: log}
	var err error
	if f.seen, err = os.Stat(file); err != nil {
		return nil, usage.Errorf("reading the tokens: %w", err)
	}
	f.tokens, err = ReadTokens(file, true)
	return f, err
}

// Tokens returns what the file has. While it cannot be read, or has mistakes, the tokens of before hold.
func (f *TokenFile) Tokens() Tokens {
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := os.Stat(f.file)
	if err != nil || os.SameFile(info, f.seen) && info.ModTime().Equal(f.seen.ModTime()) && info.Size() == f.seen.Size() {
		return f.tokens
	}
	f.seen = info
	tokens, err := ReadTokens(f.file, true)
	if err != nil {
		f.log.Error("the tokens of agents are those of before, because the new ones cannot be read", "error", err)
		return f.tokens
	}
	f.log.Info("the tokens of agents have changed", "tokens", len(tokens))
	f.tokens = tokens
	return tokens
}
