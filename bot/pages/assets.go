package pages

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
)

// An asset is a file that pages refer to. Its address contains a hash of its content, so browsers
// may cache it forever.
type asset struct {
	path string
	data []byte
}

func readAssets() (map[string]asset, error) {
	all := map[string]asset{}
	for _, name := range []string{"style.css", "live.js", "favicon.svg"} {
		data, err := fs.ReadFile(files, path.Join("assets", name))
		if err != nil {
			return nil, fmt.Errorf("reading the pages: %w", err)
		}
		sum := sha256.Sum256(data)
		all[name] = asset{path: "/assets/" + name + "?" + hex.EncodeToString(sum[:6]), data: data}
	}
	return all, nil
}

func (s *Server) asset(w http.ResponseWriter, r *http.Request) {
	a, ok := s.assets[r.PathValue("name")]
	if !ok {
		s.fail(w, r, ErrNotFound)
		return
	}
	if strings.HasSuffix(a.path, r.URL.RawQuery) && r.URL.RawQuery != "" {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(r.PathValue("name"))))
	send(w, r, http.StatusOK, a.data, false)
}
