package up

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// endTime is how long the server of the page may take to end.
const endTime = 2 * time.Second

// startPage starts the server of Berth's page, which ends with the context, and prints its address.
// Without it the lab is of use all the same.
func (r *run) startPage(ctx context.Context) {
	if len(r.viewer) == 0 {
		return
	}
	if _, err := os.Stat(r.viewer[0]); err != nil {
		return // the tool was not built
	}
	cmd := exec.CommandContext(ctx, r.viewer[0], r.viewer[1:]...) // #nosec G204 -- the tool beside this program
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = endTime
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		r.say("There is no page: %s\n", err)
		return
	}
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = cmd.Wait() // it says why on stderr
		r.say("There is no page: %s\n", strings.TrimSpace(said.String()))
		return
	}
	r.say("See it in a browser, within a minute (later: the command above):\n%s\n", strings.TrimSpace(address))
	go func() { _ = cmd.Wait() }() // it ends with the context
}
