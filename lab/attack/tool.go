package attack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"time"
	"unicode/utf8"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/berth-scheduler/berth/lab/cluster"
)

// said keeps the beginning of what a program writes and takes the rest.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
	size int64
}

// leeway is what the start and the end of a process may take on a busy machine.
const leeway = 3 * time.Second

// mostSaid is how much is kept, in bytes.
const mostSaid = 16 << 20

func (o *said) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.size += int64(len(b))
	o.text.Write(b[:min(len(b), max(0, mostSaid-o.text.Len()))])
	return len(b), nil
}

// answer is what became of a call of the tool.
type answer struct {
	stdout, stderr string
	status         int // -1: it was killed
}

// berth runs the tool and checks what holds of every call: it ends in time, takes no
// more memory than it may, and writes no control character.
func (s *stage) berth(args ...string) answer {
	if s.ctx.Err() != nil {
		return answer{status: -1}
	}
	ctx, cancel := context.WithTimeout(s.ctx, mostAnswer+2*leeway)
	defer cancel()
	var stdout, stderr said
	command := exec.CommandContext(ctx, s.lab.tool, args...)
	command.Dir, command.Stdout, command.Stderr = s.dir, &stdout, &stderr
	command.WaitDelay = time.Second
	called := "berth " + short(fmt.Sprint(args))
	began := time.Now()
	if !s.note(command.Start()) {
		return answer{}
	}
	measured, stop := context.WithCancel(ctx)
	var wait sync.WaitGroup
	var peak int64
	wait.Go(func() {
		every(measured, 10*time.Millisecond, func() {
			if u, err := cluster.UsageOf(command.Process.Pid); err == nil {
				if peak = max(peak, u.PeakRSS); u.RSS > killCallAt {
					_ = command.Process.Kill() // it may have ended by itself
				}
			}
		})
	})
	err := command.Wait()
	stop()
	wait.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && ctx.Err() == nil {
		s.note(err)
	}
	s.judge(called, time.Since(began), peak)
	s.checkBytes(called, stdout.text.String(), stderr.text.String())
	return answer{stdout.text.String(), stderr.text.String(), command.ProcessState.ExitCode()}
}

// calls runs the tool with each of the calls, several at a time, and looks at each
// answer.
func (s *stage) calls(calls [][]string, look func(call []string, a answer)) {
	const atOnce = 6
	var wait sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for _, call := range calls {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			look(call, s.berth(call...))
		})
	}
	wait.Wait()
}

// judge checks the time and the memory of a call.
func (s *stage) judge(called string, took time.Duration, peak int64) {
	if took > mostAnswer+leeway {
		s.broke("%s took longer than %s", called, mostAnswer)
	}
	if peak > mostMemory && !s.trusting {
		s.broke("%s took %.0f MiB", called, mebibytes(peak))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.result.ToolMiB = max(s.result.ToolMiB, mebibytes(peak))
	s.result.ToolSeconds = max(s.result.ToolSeconds, took.Seconds())
}

func (s *stage) checkBytes(called string, texts ...string) {
	for _, text := range texts {
		if at := control(text); at >= 0 {
			s.broke("%s writes a control character: %q", called, text[max(0, at-40):min(len(text), at+20)])
		}
	}
}

// control returns the index of the first control character that a terminal would obey, -1 if
// there is none. These are below 0x20, but not tab and newline, and C1, encoded or as one byte.
func control(text string) int {
	for at, width := 0, 0; at < len(text); at += width {
		var r rune
		r, width = utf8.DecodeRuneInString(text[at:])
		if r == utf8.RuneError && width == 1 {
			r = rune(text[at])
		}
		if r < 0x20 && r != '\t' && r != '\n' || r >= 0x80 && r < 0xa0 {
			return at
		}
	}
	return -1
}

// kubeconfig writes a kubeconfig for a server with the bearer's token and returns its
// path. Without an authority the server is not verified.
func (s *stage) kubeconfig(name, server string, ca []byte, token string) string {
	const only = "only"
	config := clientcmdapi.NewConfig()
	config.Clusters[only] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca, InsecureSkipTLSVerify: ca == nil}
	config.AuthInfos[only] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts[only] = &clientcmdapi.Context{Cluster: only, AuthInfo: only}
	config.CurrentContext = only
	path := s.file(name, "")
	s.note(clientcmd.WriteToFile(*config, path))
	return path
}

// asking returns the flags with which the tool asks the stage's daemon as the bearer of a
// token.
func (s *stage) asking(token string) []string {
	file := s.kubeconfig("asking.kubeconfig", s.lab.AdminConfig().Host, s.lab.AdminConfig().CAData, token)
	return []string{"--kubeconfig", file, "--daemon", s.address(), "--insecure-skip-tls-verify"}
}

// owner returns the flags with which the tool reads the cluster as its owner.
func (s *stage) owner() []string { return []string{"--kubeconfig", s.lab.Kubeconfig(cluster.Admin)} }

// with returns a call with more flags.
func with(flags []string, args ...string) []string { return append(args, flags...) }
