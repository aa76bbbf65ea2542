package page

import (
	"embed"
	"net/http"
	"path"
	"strings"
)

// assets are the files of the page, as tools/bundle makes them.
//
//go:embed assets
var assets embed.FS

// types are the types of assets, by the ends of their names.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".svg":  "image/svg+xml",
	".txt":  "text/plain; charset=utf-8",
}

// asset serves a file of the page.
func asset(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	if name == "" {
		name = "index.html"
	}
	body, err := assets.ReadFile("assets/" + name)
	switch {
	case err != nil:
		http.Error(w, "There is no such file.", http.StatusNotFound)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		http.Error(w, "Only GET is served.", http.StatusMethodNotAllowed)
	default:
		w.Header().Set("Content-Type", types[path.Ext(name)])
		_, _ = w.Write(body) // who asked is gone
	}
}
