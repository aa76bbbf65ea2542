package tool

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

// A flag that the others leave nothing to say is an error that names it, and so is a
// file that a flag names and that cannot be read.
func TestCallsThatAreWrong(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	write(t, empty, "")
	hosted := filepath.Join(dir, "hosted.yaml")
	write(t, hosted, "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: [{plugins: {multiPoint: {enabled: [{name: Tier}]}}}]\n")
	const cluster = " -f testdata/zones.yaml"
	for call, want := range map[string]string{
		"simulate --as eve" + cluster:                                              "--as: goes with --kubeconfig or --context: the cluster comes from files here",
		"simulate --ask-extenders" + cluster:                                       "--ask-extenders: only --config FILE names extenders",
		"simulate --strict --kubeconfig k":                                         "--strict: is about files; give some with -f",
		"what-if drain node-1 --request-timeout 3s" + cluster:                      "--request-timeout: goes with --kubeconfig or --context: the cluster comes from files here",
		"fit --expand --kubeconfig k":                                              "--expand: is about files; give some with -f",
		"why web --lease a/b" + cluster:                                            "--lease: goes with --daemon",
		"why web --token t" + cluster:                                              "--token: goes with --kubeconfig or --context: the cluster comes from files here",
		"why web --request-timeout soon":                                           "--request-timeout soon: must be a time, such as 30s or 2m",
		"why web --request-timeout -1s":                                            "--request-timeout -1s: must be a time, such as 30s or 2m",
		"status --request-timeout -1s":                                             "--request-timeout -1s: must be a time, such as 30s or 2m",
		"status --shadow s --insecure-skip-tls-verify --request-timeout -1s":       "--request-timeout -1s: must be a time, such as 30s or 2m",
		"record --to " + dir + "/to --request-timeout -1s":                         "--request-timeout -1s: must be a time, such as 30s or 2m",
		"status --daemon=":                                                         "--daemon: is empty; give https://HOST:PORT, or auto",
		"top --daemon=":                                                            "--daemon: is empty; give https://HOST:PORT, or auto",
		"events --daemon=":                                                         "--daemon: is empty; give https://HOST:PORT, or auto",
		"status --daemon http://":                                                  "--daemon http://: must be like https://HOST:PORT, or auto",
		"status --daemon https://:1":                                               "--daemon https://:1: must be like https://HOST:PORT, or auto",
		"why web --daemon http://a":                                                "--daemon http://a: must be like https://HOST:PORT, or auto",
		"why web --daemon auto --as eve":                                           "--as: the scheduler answers whom it authenticates, for nobody else; leave it out",
		"top --as-group admins":                                                    "--as-group: the scheduler answers whom it authenticates, for nobody else; leave it out",
		"why web -l app=web" + cluster:                                             "--selector: goes with --all",
		"why --all -l =" + cluster:                                                 "--selector: ",
		"why shop/web -n shop" + cluster:                                           "--namespace: shop/web has a namespace, shop; leave one of them out",
		"why web --daemon auto --seed 3":                                           "--seed: the scheduler that --daemon asks has its own; leave it out",
		"why web --daemon auto --strict":                                           "--strict: the scheduler that --daemon asks answers about its own cluster; leave it out",
		"top --daemon-ca " + empty:                                                 "--daemon-ca: goes with --daemon URL; ",
		"top --daemon https://a:1 --lease a/b":                                     "--lease: finds the scheduler for --daemon auto; a URL is given",
		"top --daemon https://a:1 --insecure-skip-tls-verify --daemon-ca=" + empty: "--daemon-ca: has no effect with --insecure-skip-tls-verify",
		"top --once --interval 3s":                                                 "--interval: has no effect with --once",
		"top -o json --interval 3s":                                                "--interval: has no effect with -o json",
		"top web":                                                                  `unexpected argument "web"`,
		"events web --follow --limit 3":                                            "--limit: has no effect with --follow",
		"events -n shop --reason cpu":                                              "--namespace: is that of a pod; name one",
		"events -n shop shop/web":                                                  "--namespace: shop/web has a namespace, shop; leave one of them out",
		"events web cart":                                                          `unexpected argument "cart"; give one pod`,
		"config check":                                                             "which configuration? give its file, or - for standard input",
		"config show a b":                                                          `unexpected argument "b"; give one file`,
		"config check " + dir + "/none":                                            dir + "/none: no such file or directory",
		"config check " + dir:                                                      dir + ": is a directory",
		"simulate --config " + dir + "/none" + cluster:                             "--config " + dir + "/none: no such file or directory",
		"why web --config " + dir + cluster:                                        "--config " + dir + ": is a directory",
		"record --to " + dir + "/to --config " + dir + "/none":                     "--config " + dir + "/none: no such file or directory",
		"top --daemon https://a:1 --daemon-ca " + dir + "/none":                    "--daemon-ca " + dir + "/none: no such file or directory",
		"top --daemon https://a:1 --daemon-ca " + empty:                            "--daemon-ca " + empty + ": holds no certificate in PEM",
		"replay " + dir + "/none":                                                  dir + "/none: no such file or directory",
		"replay " + empty:                                                          empty + ": ",
		"simulate --seed -1" + cluster:                                             "--seed -1: must be a whole number from 0",
		"top --interval soon":                                                      "--interval soon: must be a time, such as 90s or 10m",
		"events web --limit many":                                                  "--limit many: must be a whole number",
		"simulate --strict=perhaps" + cluster:                                      "--strict perhaps: must be true or false",
		"simulate --filename=":                                                     "--filename: is empty; give a file, a directory or -",
		"why a/b/c" + cluster:                                                      `"a/b/c" is not the name of a pod: give NAME or NAMESPACE/NAME, or [NAMESPACE/]KIND/NAME of a workload`,
		"why -n shop shop/deploy/web" + cluster:                                    "--namespace: shop/deploy/web has a namespace, shop; leave one of them out",
		"why shop/deploy/web" + cluster:                                            "deployment shop/web",
		"why /" + cluster:                                                          `"/" is not the name of a pod`,
		"events a/":                                                                `"a/" is not the name of a pod`,
		"record --to " + empty:                                                     "--to " + empty + ": not a directory",
		"why web --config " + hosted + cluster:                                     hosted + `: creating profile for scheduler name default-scheduler: MultiPointPlugin "Tier" does not exist; if your scheduler has it, build the tool with it (scheduler.NewToolCommand), go on without it (--plugins Tier), or ask the scheduler ("why POD --daemon auto", "events POD")`,
		"top -A":                                                                   "unknown shorthand flag: 'A' in -A; all namespaces are read already",
		"why web -A -n shop" + cluster:                                             "if any flags in the group [namespace all-namespaces] are set none of the others can be",
		"events -A web":                                                            "--all-namespaces: the scheduler knows a pod by its namespace; give NAMESPACE/POD",
		"why -A web --daemon auto":                                                 "--all-namespaces: the scheduler knows a pod by its namespace; give NAMESPACE/POD",
		"simulate -l a==b==c" + cluster:                                            "--selector a==b==c: ",
		"simulate --pod a -l a=b" + cluster:                                        "--selector: --pod names the pods that are explained; leave one of them out",
		"what-if -n shop scale deployment/web=3" + cluster:                         "scale: there is no shop/deployment/web",
		"what-if -n shop evict web-abc-21" + cluster:                               "evict: no pod is called web-abc-21",
		"fit -n shop --pod web-abc-21" + cluster:                                   "no pod is called web-abc-21",
		"simulate -f a.yaml,b.yaml":                                                "--filename a.yaml,b.yaml: no such file or directory; give a -f for each file",
		"record":                                                                   "give a directory with --to",
		"record --to " + dir + " --limit -5":                                       "--limit -5: must be ",
		"record --to " + dir + " --for -5s":                                        "--for -5s: must be positive",
	} {
		args := strings.Fields(call)
		if !strings.Contains(call, "--kubeconfig") && !strings.Contains(call, "--context") && strings.Contains("why top events record", args[0]) && !strings.Contains(call, " -f ") {
			args = append(args, "--kubeconfig", kubeconfigFor(t, "https://127.0.0.1:1"))
		}
		if status, out, err := berth("", args...); status != exitInvalid || out != "" || !strings.HasPrefix(err, "berth: "+want) || strings.Count(err, "\n") != 1 {
			t.Errorf("%s: %d %q %q, want %q", call, status, out, err, want)
		}
	}
}

// A change counts for the exit status only with the pods that it leaves without a node.
func TestWhatIfStatus(t *testing.T) {
	const cluster = "what-if -f testdata/zones.yaml -f testdata/big-pods.yaml "
	for change, want := range map[string]int{"cordon node-1": exitPlaced, "remove node-3": exitPlaced, "lose-zone b": exitUnplaced, "evict web-abc-21": exitPlaced} {
		status, out, _ := berth("", strings.Fields(cluster+change)...)
		if status != want || !strings.Contains(out, "PENDING BEFORE, AND STILL") {
			t.Errorf("%s: %d, want %d: %s", change, status, want, out)
		}
	}
	if status, _, _ := berth("", strings.Fields("what-if -f testdata/zones.yaml apply testdata/big-pods.yaml")...); status != exitUnplaced {
		t.Errorf("new pods without a node: %d", status)
	}
}

// The command and the flag say the same, under the name that was called.
func TestVersion(t *testing.T) {
	for _, call := range []string{"berth", "kubectl-berth"} {
		var said [2]bytes.Buffer
		for i, arg := range []string{"version", "--version"} {
			if status := run([]string{call, arg}, nil, &said[i], &said[i]); status != 0 {
				t.Errorf("%s %s: status %d", call, arg, status)
			}
		}
		if said[0].String() != said[1].String() || !strings.Contains(said[0].String(), version) {
			t.Errorf("%s: %q and %q", call, said[0].String(), said[1].String())
		}
	}
}
