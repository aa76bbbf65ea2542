package page

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/berth-scheduler/berth/edge/api"
)

// Bounds of what a daemon answers: of an answer, and of why there is none.
const (
	mostAnswer  = 64 << 20
	mostRefusal = 64 << 10
)

// pass passes a question on to the daemon. It reads the answer as a whole, and decodes it, so that
// one that is too long for the browser or breaks off is an error.
func (s *Server) pass(w http.ResponseWriter, r *http.Request, what string) {
	header := http.Header{}
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		header.Set("Accept-Encoding", "gzip")
	}
	reply, err := s.options.Data(r.Context(), what, r.URL.Query(), header)
	if err != nil {
		p := Problem(http.StatusBadGateway, api.Failed, err.Error())
		_ = errors.As(err, &p)
		writeProblem(w, p)
		return
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		writeProblem(w, refusal(reply))
		return
	}
	var body bytes.Buffer
	size := int64(0)
	plain, err := decoded(reply, io.TeeReader(io.LimitReader(reply.Body, mostAnswer+1), &body))
	if err == nil {
		size, err = io.Copy(io.Discard, io.LimitReader(plain, mostAnswer+1))
	}
	switch {
	case r.Context().Err() != nil: // who asked is gone
		return
	case max(size, int64(body.Len())) > mostAnswer:
		refuse(w, http.StatusInternalServerError, api.Failed, fmt.Sprintf("%s: the answer has more than %d MiB, which is the most that this page passes on", r.URL.Path, mostAnswer>>20))
		return
	case err != nil:
		refuse(w, http.StatusBadGateway, api.Failed, fmt.Sprintf("%s: the answer broke off: %s", r.URL.Path, err))
		return
	}
	for _, name := range []string{"Content-Type", "Content-Encoding", "Vary"} {
		if value := reply.Header.Get(name); value != "" {
			w.Header().Set(name, value)
		}
	}
	_, _ = w.Write(body.Bytes()) // who asked is gone
}

// decoded returns what a reply says, of its body as it came.
func decoded(reply *http.Response, body io.Reader) (io.Reader, error) {
	switch coding := reply.Header.Get("Content-Encoding"); coding {
	case "":
		return body, nil
	case "gzip":
		return gzip.NewReader(body)
	default:
		return nil, fmt.Errorf("it is in the coding %q, which nobody asked for", coding)
	}
}

// refusal returns what an answer says that is none. Before the daemon's own handlers the library
// answers that authenticates and authorizes, as a Status or as text.
func refusal(reply *http.Response) *api.Problem {
	var body []byte
	from, err := decoded(reply, reply.Body)
	if err == nil {
		body, err = io.ReadAll(io.LimitReader(from, mostRefusal))
	}
	if err != nil {
		return Problem(http.StatusBadGateway, api.Failed, "the daemon's refusal cannot be read: "+err.Error())
	}
	var p api.Problem
	if json.Unmarshal(body, &p) == nil && p.Kind == "Problem" && p.Code >= 400 && p.Code < 600 {
		return &p
	}
	var status struct{ Message string }
	if json.Unmarshal(body, &status) != nil || status.Message == "" {
		status.Message = string(body)
	}
	code := reply.StatusCode
	switch {
	case code == http.StatusUnauthorized:
		return Problem(code, "Unauthorized", "the scheduler does not accept the credentials of the kubeconfig; log in anew, and start \"berth view\" again")
	case code == http.StatusForbidden:
		return Problem(code, "Forbidden", status.Message+". Whoever may give rights can run: kubectl create clusterrolebinding berth-readers --clusterrole=berth-scheduler-reader --user=YOU")
	case code < 400 || code >= 600:
		return Problem(http.StatusBadGateway, api.Failed, "the daemon answers "+reply.Status)
	}
	return Problem(code, api.Failed, status.Message)
}
