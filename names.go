package gosimnet

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// mostAliases is how long a chain of CNAME records may be.
const mostAliases = 8

// resource is one record of a name.
type resource struct {
	kind  dnsmessage.Type
	body  dnsmessage.ResourceBody
	addr  netip.Addr // of A and AAAA
	alias string     // of CNAME
}

// foldName is a name without what does not count: case, and the dot at the end.
func foldName(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// AddRecord adds resource records to a name, for every host, besides what the network knows by itself: the A and AAAA records of all hosts' addresses,
// and the PTR records of these. A record is written as in a zone file, its type and then its data:
//
//	"A 10.0.0.7", "AAAA fd00::7", "CNAME web-2", "PTR web", "SRV 10 5 8080 web" (priority, weight, port, target), "TXT any text"
//
// All names are absolute, with or without the dot at the end; case does not count. A CNAME counts where its name
// has no record of the type that is asked for. Records live for 0 seconds, so that nobody caches them. A name that is empty or no domain name, and a record
// that is malformed or of another type, are errors, and nothing is added then.
func (s *Simnet) AddRecord(name string, records ...string) error {
	if _, err := domainName(name); err != nil {
		return err
	}
	parsed, err := parseResources(records)
	if err != nil {
		return err
	}
	return s.control(func() error {
		if s.zone == nil {
			s.zone = make(map[string][]resource)
		}
		k := foldName(name)
		s.zone[k] = append(s.zone[k], parsed...)
		return nil
	})
}

// RemoveRecords takes away all records that AddRecord has given a name. What the network knows by itself stays.
func (s *Simnet) RemoveRecords(name string) error {
	return s.control(func() error {
		delete(s.zone, foldName(name))
		return nil
	})
}

// View is what a host is told of a name in place of what everybody is told. Make one with Answers, NXDomain, ServFail or Silence; the
// zero View is what everybody is told.
type View struct {
	kind    viewKind
	records []string
	parsed  []resource
}

type viewKind uint8

const (
	viewCommon viewKind = iota
	viewAnswers
	viewNXDomain
	viewServFail
	viewSilence
)

// String names the outcome, and the records if there are any.
func (v View) String() string {
	kind := nameOf(int(v.kind), "View", "common", "answers", "NXDOMAIN", "SERVFAIL", "silence")
	if len(v.records) == 0 {
		return kind
	}
	return kind + " " + strings.Join(v.records, ", ")
}

// Answers is a view in which a name has these records and no others, written as for AddRecord; with none the
// name exists, and has nothing to tell.
func Answers(records ...string) View {
	return View{kind: viewAnswers, records: slices.Clone(records)}
}

// NXDomain is a view in which there is no such name.
func NXDomain() View { return View{kind: viewNXDomain} }

// ServFail is a view in which the name server fails: a temporary error.
func ServFail() View { return View{kind: viewServFail} }

// Silence is a view in which the name server does not answer: the asker's time runs out.
func Silence() View { return View{kind: viewSilence} }

// SetView sets what this host, and no other, is told of a name from now on, by its Resolver and when it dials; "" stands for every name that has no view of its own, and the
// zero View ends a view. IP addresses and "localhost" need no names, and have no views. A malformed record is an error. Views are part of
// how the network is built: Heal does not end them.
func (h *Host) SetView(name string, v View) (err error) {
	if err := h.fault(); err != nil {
		return err
	}
	if name != "" {
		if _, err := domainName(name); err != nil {
			return err
		}
	}
	if v.parsed, err = parseResources(v.records); err != nil {
		return err
	}
	return h.net.control(func() error {
		if h.views == nil {
			h.views = make(map[string]View)
		}
		kind := EventFault
		h.views[foldName(name)] = v
		if v.kind == viewCommon {
			kind = EventRepair
			delete(h.views, foldName(name))
		}
		h.net.traceAbout("view", kind, h.name, name, "view "+v.String())
		return nil
	})
}

// domainName is a name as DNS messages have it.
func domainName(name string) (dnsmessage.Name, error) {
	short := strings.TrimSuffix(name, ".")
	good := len(short) <= 253
	for label := range strings.SplitSeq(short, ".") {
		good = good && len(label) > 0 && len(label) < 64
	}
	if !good {
		return dnsmessage.Name{}, fmt.Errorf("gosimnet: %q is no domain name", name)
	}
	return dnsmessage.NewName(short + ".")
}

// parseResources understands records as AddRecord has them.
func parseResources(records []string) ([]resource, error) {
	var parsed []resource
	for _, text := range records {
		kind, data, _ := strings.Cut(text, " ")
		kind = strings.ToUpper(kind)
		if kind != "TXT" { // blanks are part of a text
			data = strings.TrimSpace(data)
		}
		r, err := parseResource(kind, data)
		if err != nil {
			return nil, fmt.Errorf("gosimnet: record %q: %w", text, err)
		}
		parsed = append(parsed, r)
	}
	return parsed, nil
}

func parseResource(kind, data string) (resource, error) {
	switch kind {
	case "A", "AAAA":
		a, err := netip.ParseAddr(data)
		if err != nil {
			return resource{}, err
		}
		if a.Is4() != (kind == "A") || a.Zone() != "" {
			return resource{}, fmt.Errorf("%v is no address of an %s record", a, kind)
		}
		return addressResource(a), nil
	case "CNAME":
		n, err := domainName(data)
		return resource{kind: dnsmessage.TypeCNAME, body: &dnsmessage.CNAMEResource{CNAME: n}, alias: data}, err
	case "PTR":
		n, err := domainName(data)
		return resource{kind: dnsmessage.TypePTR, body: &dnsmessage.PTRResource{PTR: n}}, err
	case "SRV":
		return parseService(data)
	case "TXT":
		return parseText(data)
	}
	return resource{}, fmt.Errorf("its type is none of A, AAAA, CNAME, PTR, SRV and TXT")
}

// addressResource is the record of an address.
func addressResource(a netip.Addr) resource {
	if a.Is4() {
		return resource{kind: dnsmessage.TypeA, body: &dnsmessage.AResource{A: a.As4()}, addr: a}
	}
	return resource{kind: dnsmessage.TypeAAAA, body: &dnsmessage.AAAAResource{AAAA: a.As16()}, addr: a}
}

// parseService understands the data of an SRV record.
func parseService(data string) (resource, error) {
	f := strings.Fields(data)
	if len(f) != 4 {
		return resource{}, fmt.Errorf("it has %d fields, want priority, weight, port and target", len(f))
	}
	var n [3]uint16
	for i := range n {
		v, err := strconv.ParseUint(f[i], 10, 16)
		if err != nil {
			return resource{}, err
		}
		n[i] = uint16(v)
	}
	target, err := domainName(f[3])
	return resource{kind: dnsmessage.TypeSRV, body: &dnsmessage.SRVResource{Priority: n[0], Weight: n[1], Port: n[2], Target: target}}, err
}

// parseText understands the data of a TXT record, which is no longer than the two bytes of its length can tell, those of its strings included.
func parseText(data string) (resource, error) {
	parts := texts(data)
	if n := len(data) + len(parts); n > maxStreamAnswer {
		return resource{}, fmt.Errorf("it takes %d bytes, of which a record holds %d", n, maxStreamAnswer)
	}
	return resource{kind: dnsmessage.TypeTXT, body: &dnsmessage.TXTResource{TXT: parts}}, nil
}

// texts cuts a text into strings of 255 bytes, the most that one of a TXT record holds.
func texts(data string) []string {
	var parts []string
	for len(data) > 255 {
		parts = append(parts, data[:255])
		data = data[255:]
	}
	return append(parts, data)
}

// hostNamed is the host of a name, or nil.
func (s *Simnet) hostNamed(name string) *Host {
	if h := s.hosts[name]; h != nil {
		return h
	}
	k := foldName(name)
	if h := s.hosts[k]; h != nil {
		return h
	}
	return s.folded[k]
}

// common lists the records of a name that everybody sees. An unknown name has none.
func (s *Simnet) common(name string) []resource {
	var all []resource
	if h := s.hostNamed(name); h != nil {
		for _, a := range h.addrs {
			all = append(all, addressResource(a))
		}
	}
	if a, ok := reversed(foldName(name)); ok && s.byAddr[a] != nil {
		if n, err := domainName(s.byAddr[a].name); err == nil {
			all = append(all, resource{kind: dnsmessage.TypePTR, body: &dnsmessage.PTRResource{PTR: n}})
		}
	}
	return append(all, s.zone[foldName(name)]...)
}

// reversed is the address that a name of in-addr.arpa or ip6.arpa stands for.
func reversed(name string) (netip.Addr, bool) {
	if short, ok := strings.CutSuffix(name, ".in-addr.arpa"); ok {
		labels := strings.Split(short, ".")
		slices.Reverse(labels)
		a, err := netip.ParseAddr(strings.Join(labels, "."))
		return a, err == nil
	}
	short, ok := strings.CutSuffix(name, ".ip6.arpa")
	labels := strings.Split(short, ".")
	if !ok || len(labels) != 32 {
		return netip.Addr{}, false
	}
	slices.Reverse(labels)
	var b strings.Builder
	for i, l := range labels {
		if i > 0 && i%4 == 0 {
			b.WriteByte(':')
		}
		b.WriteString(l)
	}
	a, err := netip.ParseAddr(b.String())
	return a, err == nil
}

// reply is what the name server says to a question.
type reply struct {
	rcode  dnsmessage.RCode
	silent bool
	owners []string   // of the answers
	answer []resource // aliases first
}

// ask answers a question as the host sees it.
func (h *Host) ask(name string, kind dnsmessage.Type) (r reply) {
	for range mostAliases {
		known, next := r.add(h, name, kind)
		if next == "" {
			if !known {
				r.rcode = dnsmessage.RCodeNameError
			}
			return r
		}
		name = next
	}
	r.rcode = dnsmessage.RCodeServerFailure
	return r
}

// add looks a name up. It reports whether the name exists, and which one to ask next, if any.
func (r *reply) add(h *Host, name string, kind dnsmessage.Type) (known bool, next string) {
	all, v := h.resources(name)
	switch v {
	case viewSilence:
		r.silent = true
		return true, ""
	case viewServFail:
		r.rcode = dnsmessage.RCodeServerFailure
		return true, ""
	case viewAnswers:
		known = true
	}
	before := len(r.answer)
	for _, a := range all {
		if a.matches(kind) {
			r.answer, r.owners = append(r.answer, a), append(r.owners, name)
		}
	}
	alias := slices.IndexFunc(all, func(a resource) bool { return a.alias != "" })
	if len(r.answer) > before || alias < 0 {
		return known || len(all) > 0, ""
	}
	r.answer, r.owners = append(r.answer, all[alias]), append(r.owners, name)
	return true, all[alias].alias
}

// anyAddress is what Dial asks for: A or AAAA.
const anyAddress dnsmessage.Type = 0

// matches reports whether the record is of a type that is asked for.
func (a resource) matches(kind dnsmessage.Type) bool {
	return a.kind == kind || kind == dnsmessage.TypeALL || kind == anyAddress && a.addr.IsValid()
}

// resources lists the records of a name as the host sees it.
func (h *Host) resources(name string) ([]resource, viewKind) {
	v, ok := h.views[foldName(name)]
	if !ok {
		v, ok = h.views[""]
	}
	if ok {
		return v.parsed, v.kind
	}
	return h.net.common(name), viewCommon
}

// addresses finds the addresses that a name stands for, as the host sees it. The error is errSilent if there is no answer.
func (h *Host) addresses(name string) (all []netip.Addr, err error) {
	r := h.ask(name, anyAddress)
	for _, a := range r.answer {
		if a.addr.IsValid() {
			all = append(all, a.addr)
		}
	}
	switch {
	case r.silent:
		return nil, errSilent
	case r.rcode == dnsmessage.RCodeServerFailure:
		return nil, &net.DNSError{Err: "server misbehaving", Name: name, IsTemporary: true}
	case len(all) == 0:
		return nil, &net.DNSError{Err: errNoAddress.Error(), Name: name, IsNotFound: true}
	}
	return all, nil
}

// errSilent says that a name server does not answer.
var errSilent = errors.New("no answer")
