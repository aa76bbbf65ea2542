package attack

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	corev1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/edge/api"
)

var endpointAttacks = []Attack{
	{Name: "endpoint/slow-readers", Short: true, start: plain, prepare: fillRecords,
		Title: "200 connections ask for all records and never read", play: slowReaders},
	{Name: "endpoint/streams", Short: true, start: plain,
		Title: "200 connections follow what happens and never read, while pods come", play: streams},
	{Name: "endpoint/questions", start: plain, prepare: fillRecords,
		Title: "40 clients ask why, about all pods and about one, as fast as they can", play: questions},
	{Name: "endpoint/requests", Short: true, start: plain,
		Title: "requests with headers, addresses and bodies without end, and parameters out of range", play: requests},
	{Name: "endpoint/half-open", start: plain,
		Title: "1,000 connections send half a handshake or half a header", play: halfOpen},
	{Name: "endpoint/http2-windows", start: plain, prepare: fillRecords,
		Title: "HTTP/2: 400 streams ask for all records and open no window", play: closedWindows},
	{Name: "endpoint/http2-resets", start: plain,
		Title: "HTTP/2: streams are opened and reset without a pause", play: rapidResets},
	{Name: "endpoint/http2-frames", start: plain,
		Title: "HTTP/2: headers that never end, pings and settings whose answers nobody reads", play: endlessFrames},
}

// fillRecords creates pods with long names, of which the daemon keeps some thousand
// records.
func fillRecords(s *stage) {
	const placed, rejected = 1000, 1000
	s.create(placed, func(i int) *corev1.Pod { return newPod(target, "placed-"+giant(i), "1m") })
	s.create(rejected, func(i int) *corev1.Pod { return newPod(target, giant(i), "1k") })
	s.need("the pods to be rejected", func() bool { return s.waiting() == rejected })
}

// giant is the name of a pod that fits nowhere.
func giant(i int) string { return fmt.Sprintf("giant-%d-%s", i, strings.Repeat("x", 200)) }

// dial opens a connection to the daemon as a person, with a small buffer for what comes.
func (s *stage) dial(p person, protocols ...string) (*tls.Conn, error) {
	config, err := p.tls()
	if err != nil {
		return nil, err
	}
	config.NextProtos = protocols
	raw, err := (&net.Dialer{Timeout: mostLive}).DialContext(s.ctx, "tcp", strings.TrimPrefix(s.address(), "https://"))
	if err != nil {
		return nil, err
	}
	_ = raw.(*net.TCPConn).SetReadBuffer(4 << 10) // a hint
	conn := tls.Client(raw, config)
	_ = raw.SetDeadline(time.Now().Add(playTime))
	if err := conn.HandshakeContext(s.ctx); err != nil {
		raw.Close()
		return nil, err
	}
	return conn, nil
}

// askAndHold sends a request over n connections each and reads nothing for a time. What
// the daemon refuses counts as well as what it answers.
func (s *stage) askAndHold(n int, hold time.Duration, request string) {
	var mu sync.Mutex
	var open []net.Conn
	s.many(n, func(int) error {
		conn, err := s.dial(person{}, "http/1.1")
		if err != nil {
			return nil // the daemon may refuse more connections
		}
		_, _ = io.WriteString(conn, request)
		mu.Lock()
		open = append(open, conn)
		mu.Unlock()
		return nil
	})
	if len(open) == 0 {
		s.broke("the daemon takes no connection")
	}
	s.rest(hold)
	for _, conn := range open {
		conn.(*tls.Conn).NetConn().Close()
	}
}

// get is the text of a request as the reader of records.
func (s *stage) get(path string) string {
	return fmt.Sprintf("GET %s HTTP/1.1\r\nHost: daemon\r\nAuthorization: Bearer %s\r\n\r\n", path, s.lab.reader)
}

func slowReaders(s *stage) {
	s.askAndHold(200, 8*time.Second, s.get(api.Prefix+"records?limit=10000"))
}

func streams(s *stage) {
	var churn sync.WaitGroup
	churn.Go(func() {
		s.create(1000, func(i int) *corev1.Pod { return newPod(target, fmt.Sprintf("streamed-%d", i), "1k") })
	})
	s.askAndHold(200, 5*time.Second, s.get(api.Prefix+"watch"))
	churn.Wait()
}

func questions(s *stage) {
	ctx, cancel := context.WithTimeout(s.ctx, 8*time.Second)
	defer cancel()
	var clients sync.WaitGroup
	for i := range 40 {
		path := api.Prefix + "why/all"
		if i%2 == 0 {
			path = api.Prefix + "why?pod=" + url.QueryEscape(target+"/"+giant(i))
		}
		clients.Go(func() {
			for ctx.Err() == nil {
				_, _, _ = s.ask(ctx, person{token: s.lab.reader}, path, mostAnswer) // refused or answered
			}
		})
	}
	clients.Wait()
	if status, body, err := s.ask(s.ctx, person{token: s.lab.reader}, api.Prefix+"why?pod="+url.QueryEscape(target+"/"+giant(0)), mostAnswer); err != nil || status != http.StatusOK {
		s.broke("a question after the flood: status %d, %v: %s", status, err, short(body))
	}
}

func requests(s *stage) {
	long := strings.Repeat("x", 900<<10)
	for _, path := range []string{"records?reason=" + long, "records?pod=" + long, "why?pod=" + long, "records?limit=-1", "records?limit=99999999999999999999",
		"records?since=-1h", "records?since=9999999h", "pending?limit=0", "why?pod=%1b%5d0%3bx%07", "records?pod=%00", "records?" + strings.Repeat("reason=x&", 50_000)} {
		status, body, err := s.ask(s.ctx, person{token: s.lab.reader}, api.Prefix+path, mostLive)
		if err != nil || status == http.StatusInternalServerError {
			s.broke("%s: status %d, %v: %s", short(path), status, err, short(body))
		}
		s.checkBytes("the answer to "+short(path), body)
	}
	request := s.get(api.Prefix + "records")
	head := strings.TrimSuffix(request, "\r\n")
	s.pour(head, "X-Long: "+long+"\r\n", 32)
	s.pour(head+"Transfer-Encoding: chunked\r\n\r\n", "e1000\r\n"+long[:0xe1000]+"\r\n", 512)
	s.pour("POST /metrics HTTP/1.1\r\nHost: daemon\r\nTransfer-Encoding: chunked\r\n\r\n", "e1000\r\n"+long[:0xe1000]+"\r\n", 512)
}

// pour sends a head and then a part again and again, as often as the daemon takes it.
func (s *stage) pour(head, part string, times int) {
	conn, err := s.dial(person{}, "http/1.1")
	if err != nil {
		s.broke("the daemon takes no connection: %v", err)
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	_, err = io.WriteString(conn, head)
	for i := 0; err == nil && i < times; i++ {
		_, err = io.WriteString(conn, part)
	}
}

func halfOpen(s *stage) {
	var mu sync.Mutex
	var open []net.Conn
	s.many(1000, func(i int) error {
		if i%2 == 0 {
			if conn, err := s.dial(person{}, "http/1.1"); err == nil {
				_, _ = io.WriteString(conn, "GET /livez HTTP/1.1\r\nHost: da")
				mu.Lock()
				open = append(open, conn.NetConn())
				mu.Unlock()
			}
			return nil
		}
		conn, err := net.DialTimeout("tcp", strings.TrimPrefix(s.address(), "https://"), mostLive)
		if err == nil {
			_, _ = conn.Write([]byte{0x16, 0x03, 0x01, 0x02}) // the first bytes of a hello
			mu.Lock()
			open = append(open, conn)
			mu.Unlock()
		}
		return nil
	})
	s.rest(5 * time.Second)
	for _, conn := range open {
		conn.Close()
	}
}

// speakHTTP2 opens a connection that speaks HTTP/2.
func (s *stage) speakHTTP2(settings ...http2.Setting) (*tls.Conn, *http2.Framer, error) {
	conn, err := s.dial(person{}, "h2")
	if err != nil {
		return nil, nil, err
	}
	if conn.ConnectionState().NegotiatedProtocol != "h2" {
		conn.Close()
		return nil, nil, fmt.Errorf("the daemon does not speak HTTP/2")
	}
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		return nil, nil, err
	}
	framer := http2.NewFramer(conn, bufio.NewReader(conn))
	return conn, framer, framer.WriteSettings(settings...)
}

// headers returns the fields of a request, compressed.
func headers(path, token string) []byte {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	for _, f := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "daemon"}, {":path", path}} {
		_ = e.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}) // a buffer takes all
	}
	if token != "" {
		_ = e.WriteField(hpack.HeaderField{Name: "authorization", Value: "Bearer " + token, Sensitive: true})
	}
	return b.Bytes()
}

func closedWindows(s *stage) {
	s.many(4, func(int) error {
		conn, framer, err := s.speakHTTP2(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		if err != nil {
			return nil // a daemon without HTTP/2 has nothing to abuse
		}
		defer conn.Close()
		for id := uint32(1); err == nil && id < 200; id += 2 {
			err = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, EndHeaders: true, EndStream: true,
				BlockFragment: headers(api.Prefix+"records?limit=10000", s.lab.reader)})
		}
		s.rest(8 * time.Second)
		return nil
	})
}

func rapidResets(s *stage) {
	end := time.Now().Add(5 * time.Second)
	s.many(4, func(int) error {
		for time.Now().Before(end) && s.ctx.Err() == nil {
			conn, framer, err := s.speakHTTP2()
			for id := uint32(1); err == nil && id < 40_000 && time.Now().Before(end); id += 2 {
				if err = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, EndHeaders: true, EndStream: true,
					BlockFragment: headers("/livez", "")}); err == nil {
					err = framer.WriteRSTStream(id, http2.ErrCodeCancel)
				}
			}
			if conn != nil {
				conn.Close()
			}
		}
		return nil
	})
}

func endlessFrames(s *stage) {
	end := time.Now().Add(5 * time.Second)
	flood := []func(*http2.Framer) error{
		func(f *http2.Framer) error { return f.WritePing(false, [8]byte{}) },
		func(f *http2.Framer) error { return f.WriteSettings() },
		func(f *http2.Framer) error {
			return f.WriteContinuation(1, false, bytes.Repeat([]byte{0x00, 0x01, 'x', 0x01, 'y'}, 3000))
		},
	}
	s.many(len(flood), func(i int) error {
		conn, framer, err := s.speakHTTP2()
		if err != nil {
			return nil
		}
		defer conn.Close()
		if i == 2 {
			err = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: headers("/livez", "")})
		}
		for err == nil && time.Now().Before(end) {
			err = flood[i](framer)
		}
		return nil
	})
}
