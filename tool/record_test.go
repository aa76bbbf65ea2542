package tool

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// A record of a cluster that could not be read is no success, and the error says why
// not.
func TestRecordOfNothing(t *testing.T) {
	forbids := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "nodes is forbidden", "reason": "Forbidden", "code": 403}`)
	}))
	t.Cleanup(forbids.Close)
	for server, why := range map[string]string{"http://127.0.0.1:1": "connection refused", forbids.URL: "forbidden"} {
		args := []string{"record", "--to", filepath.Join(t.TempDir(), "record"), "--for", "1s", "--kubeconfig", kubeconfigFor(t, server)}
		status, _, err := berth("", args...)
		if status != exitInvalid || !strings.Contains(err, "berth: nothing was recorded: the API server could not be read: ") || !strings.Contains(err, why) {
			t.Errorf("%s: exit status %d, stderr %q", server, status, err)
		}
	}
}
