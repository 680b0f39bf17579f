package sanitize

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"
)

func TestEscape(t *testing.T) {
	for text, want := range map[string]string{
		"as it is: ü":                "as it is: ü",
		"\x1b[31mred\nnext\r":        `\x1b[31mred\nnext\r`,
		"tab\tstays":                 "tab\tstays",
		"\u009b31m\x7f\x00":          `\u009b31m\x7f\x00`,
		"a\u202eb\u2066c\u2069":      `a\u202eb\u2066c\u2069`,
		"a\u202ab\u2028c\u2029":      `a\u202ab\u2028c\u2029`,
		"a\u200eb\u200fc\u061cd":     `a\u200eb\u200fc\u061cd`,
		"it's \"quoted\" \\ and 'so": "it's \"quoted\" \\ and 'so",
	} {
		if got := Escape(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

func TestEscapeJSONKeepsValues(t *testing.T) {
	want := "bell \a, escape \x1b, \u009b, \x7f, right to left \u202e, line \u2028."
	data, err := json.Marshal(map[string]string{"m": want})
	if err != nil {
		t.Fatal(err)
	}
	text := EscapeJSON(string(data))
	if strings.IndexFunc(text, isHarmful) >= 0 {
		t.Errorf("%q", text)
	}
	var got map[string]string
	if err := json.Unmarshal([]byte(text), &got); err != nil || got["m"] != want {
		t.Errorf("%q, %v", got["m"], err)
	}
}

func TestMarshalYAMLKeepsValues(t *testing.T) {
	const harmful = "\x7f\u0085\u009b\u2028\u2029\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
	want := map[string]string{"plain": "a: b", "lines": "a\n  b\n", "2026-01-01": "true", "quoted": `\u202E`}
	for i, r := range harmful {
		want[fmt.Sprintf("key%d %c", i, r)] = fmt.Sprintf("a%c b", r)
		want[fmt.Sprint(i)] = fmt.Sprintf("a\n\tb%c\n", r)
	}
	type document struct {
		At    time.Time           `yaml:"at"`
		None  []string            `yaml:"none"`
		Texts []map[string]string `yaml:"texts"`
	}
	in := document{time.Unix(1, 0).UTC(), []string{}, []map[string]string{want}}
	text, err := MarshalYAML(in)
	if err != nil {
		t.Fatal(err)
	}
	if i := strings.IndexFunc(string(text), isHarmfulInYAML); i >= 0 {
		t.Errorf("%q stands as it is in:\n%q", text[i:min(i+4, len(text))], text)
	}
	var got document
	if err := yaml.Unmarshal(text, &got); err != nil || !reflect.DeepEqual(got, in) {
		t.Errorf("%q\nis read back as\n%q: %v", text, got, err)
	}
	one, err := MarshalYAML([]string{"a\u202eb", "c"})
	if want := "- \"a\\u202Eb\"\n- c\n"; err != nil || string(one) != want {
		t.Errorf("%q, want %q; %v", one, want, err)
	}
}

func secretNames() []string {
	return strings.Fields(`password passwd pass passphrase passcode password1 Password PASSWORD
		db-password db_password db.password dbPassword DBPassword admin-passwd MYSQL_ROOT_PASSWORD PGPASSWORD mysql-pass-phrase
		pw user-pw rootPw secret client-secret clientSecret shared_secret SECRET_KEY token access-token accessToken APIToken tokens
		key api-key apiKey API_KEY apikey ssh.key private-key privateKey private_key tls.key encryption-key2 keys
		credential credentials aws-credentials dsn database_dsn sentry.DSN auth basic-auth REDIS_AUTH auth.header cert tls-cert server_cert clientCert certs`)
}

func plainNames() []string {
	return strings.Fields(`host hostname port address private-address public-address ingress-address egress-subnets private-ip ip
		user username user-name userName admin-user DB_USER db-user login owner email
		public-key publicKey PUBLIC_KEY ssh-public-key public-keys authorized-keys public_key.pem
		name database db schema url uri endpoint path version mode status state size count timeout interval
		author authority monkey keyboard keystone-host compass bypass-proxy certificate-path tokenizer secretary
		hockey turkey donkey series region zone workers colour color charset options enabled replicas`)
}

func TestNamesOfSecrets(t *testing.T) {
	secret, plain := secretNames(), plainNames()
	if len(secret) < 40 || len(plain) < 40 {
		t.Errorf("%d names of secrets, %d others", len(secret), len(plain))
	}
	for _, name := range secret {
		if !IsSecret(name) {
			t.Errorf("%s is shown", name)
		}
	}
	for _, name := range plain {
		if IsSecret(name) {
			t.Errorf("%s is hidden", name)
		}
	}
}

// Each form hides what stands beside the name of a secret, and nothing beside others.
func TestForms(t *testing.T) {
	for _, form := range []string{
		`setting changed: "NAME"="VALUE" (was unset)`,
		`setting changed: "NAME"="VALUE" (was "VALUE") in relation-1, by me@here`,
		`setting changed: "NAME"="VALUE"... (300 bytes) (was "VALUE"... (302 bytes))`,
		`setting removed: "NAME" (was "VALUE")`,
		`relation-2 of one/0: setting changed: "NAME"="VALUE" (was unset)`,
		`+ relation-set host=h NAME=VALUE port=1`, `++ NAME=VALUE`, `+ x 'NAME=VALUE and more'`, `"NAME=VALUE"`,
		`+ export x=NAME=VALUE`, `NAME=$'VALUE'`, `NAME='VALUE'`, `NAME="VALUE"`,
		`{"a": 1, "NAME": "VALUE", "b": 2}`, `{'NAME': 'VALUE'}`, `{"NAME":VALUE}`, `"NAME": ["VALUE", "VALUE"]`,
		`NAME: VALUE`, `  - NAME: VALUE`, `NAME: "VALUE"`, "several\nNAME: VALUE\nlines",
		`mysqldump --host h --NAME VALUE db`, `mysqldump --NAME=VALUE db`,
		`Server=h;User Id=sa;NAME=VALUE;Database=d`, `host=h port=1 NAME=VALUE dbname=d`,
		`https://h/login?a=1&NAME=VALUE&b=2`,
	} {
		for _, name := range []string{"password", "dbPassword", "API_KEY"} {
			text := strings.NewReplacer("NAME", name, "VALUE", "s3cr3t").Replace(form)
			if got := HideSecrets(text); strings.Contains(got, "s3cr3t") || !strings.Contains(got, Hidden) {
				t.Errorf("%q is shown as %q", text, got)
			}
		}
		for _, name := range []string{"username", "public-key", "host"} {
			text := strings.NewReplacer("NAME", name, "VALUE", "s3cr3t").Replace(form)
			if got := HideSecrets(text); got != text {
				t.Errorf("%q is shown as %q", text, got)
			}
		}
	}
}

func TestHideSecrets(t *testing.T) {
	for text, want := range map[string]string{
		`setting changed: "password"="a \" b" (was "c")`:                       `setting changed: "password"=(hidden) (was (hidden))`,
		`setting changed: "password"="x" (was unset)`:                          `setting changed: "password"=(hidden) (was unset)`,
		`"db-url"="postgres://u:s3cr3t@db:5432/x"`:                             `"db-url"="postgres://u:(hidden)@db:5432/x"`,
		`redis://:s3cr3t@h:6379/0`:                                             `redis://:(hidden)@h:6379/0`,
		`amqp://u:a@h1:1/v,amqp://u:b@h2:1/v`:                                  `amqp://u:(hidden)@h1:1/v,amqp://u:(hidden)@h2:1/v`,
		`mongodb://u:p@ss@h1:1,h2:2/db`:                                        `mongodb://u:(hidden)@h1:1,h2:2/db`,
		`postgres://u:a/b@h/db`:                                                `postgres://u:(hidden)@h/db`,
		`u:s3cr3t@tcp(h:3306)/db?x=y`:                                          `u:(hidden)@tcp(h:3306)/db?x=y`,
		`u:s3cr3t@unix(/run/m.sock)/db`:                                        `u:(hidden)@unix(/run/m.sock)/db`,
		`u:s3cr3t@/db`:                                                         `u:(hidden)@/db`,
		`u:s3cr3t@h:3306/db`:                                                   `u:(hidden)@h:3306/db`,
		`Server=h;User Id=sa;Password=a b;Database=d`:                          `Server=h;User Id=sa;Password=(hidden);Database=d`,
		`Server=h;Uid=sa;Pwd=x;Database=d`:                                     `Server=h;Uid=sa;Pwd=(hidden);Database=d`,
		`"config"="{\"user\": \"u\", \"password\": \"x \\\" y\"}" (was unset)`: `"config"="{\"user\": \"u\", \"password\": (hidden)}" (was unset)`,
		`"config"="user: u\npassword: x\nhost: h"`:                             `"config"="user: u\npassword: (hidden)\nhost: h"`,
		`"tls/private-key": "x"`:                                               `"tls/private-key": (hidden)`,
		`"db:password+1"="x" (was "y")`:                                        `"db:password+1"=(hidden) (was (hidden))`,
		`token/2=x`:                                                            `token/2=(hidden)`,
		`password=123/abc x`:                                                   `password=(hidden) x`,
		`https://h/x?user=u&password=x&sslmode=y`:                              `https://h/x?user=u&password=(hidden)&sslmode=y`,
	} {
		if got := HideSecrets(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

func TestShownAsItIs(t *testing.T) {
	for _, text := range []string{
		"", "plain text", "a = b", "12:30:01 INFO x", "auth: connection refused by server", "cert: it has expired",
		"http://host:8080/users/@me", "https://user@host/path", "git@github.com:a/b.git", "git+ssh://git@host:22/a",
		"registry:5000/image:tag@sha256:0123456789abcdef0123456789abcdef", "image:tag@sha256:0123456789abcdef0123456789abcdef",
		`hook "install" failed: exit code 1`, "Get:1 http://deb.debian.org/debian bookworm/main amd64 [53.5 kB]",
		"error: cannot open store \"etcd://db1:2379/bijou/prod?user=bijou\": etcd refuses the login: wrong user or password: x",
		"PWD=/var/lib/charm", "mail to a@b.c at 12:30",
	} {
		if got := HideSecrets(text); got != text {
			t.Errorf("%q is shown as %q", text, got)
		}
	}
}

// What is hidden stays so when it is hidden again, as where a log's file is shown.
func TestHidingTwiceChangesNothing(t *testing.T) {
	for _, text := range []string{`password=x y`, `"password"="x" (was "y")`, `a://u:p@h/?token=x&b=c`, `password: x`, `--password x`} {
		once := HideSecrets(text)
		if again := HideSecrets(once); again != once {
			t.Errorf("%q becomes %q, then %q", text, once, again)
		}
	}
}

func BenchmarkHideSecrets(b *testing.B) {
	for name, text := range map[string]string{
		"plain":   "a line that a hook prints again and again",
		"colons":  "Get:1 http://deb.debian.org/debian bookworm/main amd64 redis-server amd64 5:7.0.15-1 [72.4 kB]",
		"longest": fmt.Sprint("x=", strings.Repeat("abcdefg=", 8<<10)),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				HideSecrets(text)
			}
		})
	}
}

// Whatever hooks print is taken, and comes out harmless.
func FuzzSanitize(f *testing.F) {
	for _, seed := range []string{`"password"="x" (was "y")`, `a://u:p@h`, "password: x\n", `"{\"token\": \"x\"}"`, `x;pwd=y`, `--key 'v`, "\x1b\u202e\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got := Escape(HideSecrets(text)); strings.IndexFunc(got, isHarmful) >= 0 {
			t.Errorf("%q becomes %q", text, got)
		}
	})
}
