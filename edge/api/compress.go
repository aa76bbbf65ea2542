package api

import (
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// compressors are writers that are used again: each takes a megabyte. There are as many as there
// are places for answers.
var compressors = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is known
	return w
}}

// compressed answers in gzip where the client takes it. The answer is written as a whole when it
// returns.
func compressed(answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Vary", "Accept-Encoding")
		if !takesGzip(r) {
			answer(w, r)
			return
		}
		gz := compressors.Get().(*gzip.Writer)
		gz.Reset(w)
		defer func() {
			gz.Reset(io.Discard) // keep no answer
			compressors.Put(gz)
		}()
		w.Header().Set("Content-Encoding", "gzip")
		answer(&compressing{w, gz}, r)
		_ = gz.Close() // who asked is gone
	}
}

// compressing compresses what is written.
type compressing struct {
	http.ResponseWriter
	gz *gzip.Writer
}

// Unwrap returns the writer below, for http.ResponseController.
func (c *compressing) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *compressing) Write(p []byte) (int, error) { return c.gz.Write(p) }

// FlushError sends what was written: http.ResponseController calls it.
func (c *compressing) FlushError() error {
	if err := c.gz.Flush(); err != nil {
		return err
	}
	return http.NewResponseController(c.ResponseWriter).Flush()
}

// takesGzip reports whether the client accepts answers in gzip.
func takesGzip(r *http.Request) bool {
	for _, coding := range strings.Split(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		name, parameters, _ := strings.Cut(coding, ";")
		if !strings.EqualFold(strings.TrimSpace(name), "gzip") {
			continue
		}
		weight, isWeight := strings.CutPrefix(strings.ReplaceAll(strings.ToLower(parameters), " ", ""), "q=")
		q, err := strconv.ParseFloat(weight, 64)
		return !isWeight || err == nil && q > 0
	}
	return false
}
