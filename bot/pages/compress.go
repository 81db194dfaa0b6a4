package pages

import (
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// compressFrom is the size from which an answer is compressed: less fits into one packet.
const compressFrom = 1400

var writers = sync.Pool{New: func() any { return gzip.NewWriter(io.Discard) }}

// send writes an answer, compressed where the reader takes that. Its type is set already.
//
// A page that bears the proof of a session is not compressed: it also holds text of strangers, such as a title, and the length of
// the two together would tell somebody who can see the traffic whether they resemble each other (BREACH).
func send(w http.ResponseWriter, r *http.Request, status int, body []byte, secret bool) {
	w.Header().Add("Vary", "Accept-Encoding")
	if len(body) < compressFrom || secret || !takesGzip(r) {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(status)
		_, _ = w.Write(body) // a reader that has gone needs no answer
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	w.WriteHeader(status)
	to := writers.Get().(*gzip.Writer)
	defer writers.Put(to)
	to.Reset(w)
	_, _ = to.Write(body) // as above
	_ = to.Close()
}

// takesGzip reads Accept-Encoding as far as servers need to: a quality of 0 refuses.
func takesGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, quality, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			q, _ := strings.CutPrefix(strings.ReplaceAll(quality, " ", ""), "q=")
			value, err := strconv.ParseFloat(q, 64)
			return err != nil || value > 0
		}
	}
	return false
}
