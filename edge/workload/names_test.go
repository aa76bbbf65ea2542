package workload_test

import (
	"slices"
	"testing"

	"github.com/berth-scheduler/berth/edge/workload"
)

// The form of a pod's name tells which workloads may have made it, and what its family is. A word
// behind a dash is no such form.
func TestByName(t *testing.T) {
	for pod, want := range map[string]struct {
		family string
		one    workload.Named
	}{
		"web-5bc54dccdd-5vhx5":  {"web-*", workload.Named{Kind: "Deployment", Name: "web"}},
		"web-5bc54dccdd-xvhx5":  {"web-*", workload.Named{Kind: "ReplicaSet", Name: "web-5bc54dccdd"}},
		"agent-x2v9k":           {"agent-*", workload.Named{Kind: "DaemonSet", Name: "agent"}},
		"index-7-x2v9k":         {"index-*", workload.Named{Kind: "Job", Name: "index"}},
		"backup-29123456-x2v9k": {"backup-*", workload.Named{Kind: "CronJob", Name: "backup"}},
		"db-12":                 {"db-*", workload.Named{Kind: "StatefulSet", Name: "db"}},
		"a/job-29-x2v9k":        {"a/job-*", workload.Named{Kind: "Job", Name: "a/job-29"}},
		"db-backup":             {"db-backup", workload.Named{}},
		"web-debug":             {"web-debug", workload.Named{}},
		"redis":                 {"redis", workload.Named{}},
		"-x2v9k":                {"-x2v9k", workload.Named{}},
	} {
		all := workload.ByName(pod)
		if got := workload.Family(pod); got != want.family || (len(all) > 0) != (want.one.Kind != "") || len(all) > 0 && !slices.Contains(all, want.one) {
			t.Errorf("%s: %s, of %v; want %s, of %v", pod, got, all, want.family, want.one)
		}
	}
}
