package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// stopGrace is how long a process may take to end after SIGTERM.
const stopGrace = 10 * time.Second

// Process is a running child. Its methods may be called from any goroutine.
type Process struct {
	Name string
	// LogPath is the file that its standard output and error go to.
	LogPath string

	command  *exec.Cmd
	expected atomic.Bool   // its end was asked for
	quoted   atomic.Bool   // an error names its log
	done     chan struct{} // closed when it has ended; then err is set
	err      error
}

// startProcess runs a program in directory dir with its output in logPath.
// The child is in a process group of its own, so that an interrupt typed at the
// terminal reaches the lab alone, which then ends its children in order; and it
// dies with the lab, however the lab dies (where the system can do that).
func startProcess(name, dir, logPath string, environment []string, program string, arguments ...string) (*Process, error) {
	log, err := os.Create(logPath)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	command := exec.Command(program, arguments...)
	command.Dir = dir
	command.Env = append(os.Environ(), environment...)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = childAttributes()
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	p := &Process{Name: name, LogPath: logPath, command: command, done: make(chan struct{})}
	go func() {
		p.err = command.Wait()
		close(p.done)
	}()
	return p, nil
}

// PID is the process id.
func (p *Process) PID() int { return p.command.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Stop asks the process to end and waits until it has. It returns an error if
// the process did not end within ten seconds and was killed.
func (p *Process) Stop() error {
	p.signal(syscall.SIGTERM)
	select {
	case <-p.done:
		return nil
	case <-time.After(stopGrace):
	}
	p.Kill()
	return fmt.Errorf("%s did not end within %s after SIGTERM and was killed", p.Name, stopGrace)
}

// Kill ends the process at once, as a crash would, and waits until it is gone.
func (p *Process) Kill() {
	p.signal(syscall.SIGKILL)
	<-p.done
}

// Suspend stops the process until Resume, as a machine that is put to sleep.
func (p *Process) Suspend() { _ = p.command.Process.Signal(syscall.SIGSTOP) }

// Resume lets a suspended process go on.
func (p *Process) Resume() { _ = p.command.Process.Signal(syscall.SIGCONT) }

// ExitStatus is the process's exit status: -1 when a signal ended it. Call it
// after Done.
func (p *Process) ExitStatus() int { return p.command.ProcessState.ExitCode() }

func (p *Process) signal(s syscall.Signal) {
	p.expected.Store(true)
	// The only error is that it has ended already.
	_ = p.command.Process.Signal(s)
}

// Death describes an end that nobody asked for: nil if it was asked for.
// Call it after Done.
func (p *Process) Death() error {
	if p.expected.Load() {
		return nil
	}
	how := "ended with exit status 0"
	if p.err != nil {
		how = "died: " + p.err.Error()
	}
	return fmt.Errorf("%s %s; %s", p.Name, how, p.quote())
}

// quote is the end of the log, for an error. The log stays then.
func (p *Process) quote() string {
	p.quoted.Store(true)
	return fmt.Sprintf("the end of %s:\n%s", p.LogPath, tail(p.LogPath, 20))
}

// waitUntil polls ready every interval until it returns nil. It gives up when
// the context ends, and says what ready said last, or when the process dies.
func (p *Process) waitUntil(ctx context.Context, interval time.Duration, ready func(context.Context) error) error {
	for {
		attempt, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := ready(attempt)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			if death := p.Death(); death != nil {
				return death
			}
			return fmt.Errorf("%s was stopped before it was ready", p.Name)
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), context.Canceled) { // somebody asked for the end
				return fmt.Errorf("waiting for %s: %w", p.Name, context.Canceled)
			}
			return fmt.Errorf("waiting for %s: %w (%w); %s", p.Name, context.Cause(ctx), err, p.quote())
		case <-time.After(interval):
		}
	}
}

// tail is the last lines of a file, or why it cannot be read.
func tail(path string, lines int) string {
	const most = 16 << 10
	file, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	if _, err := file.Seek(-most, io.SeekEnd); err != nil {
		// The file is shorter than that: read it from its start.
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return err.Error()
		}
	}
	text, err := io.ReadAll(io.LimitReader(file, most))
	if err != nil && !errors.Is(err, io.EOF) {
		return err.Error()
	}
	all := strings.Split(string(bytes.TrimRight(text, "\n")), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
