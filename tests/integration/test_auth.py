"""Who may come in: token, host, origin, identity headers."""

import secrets

import pytest

from nook import free_port, refuse

ROUTES = [("GET", "/healthz"), ("GET", "/readyz"), ("GET", "/metrics"),
          ("GET", "/v1/capabilities"), ("POST", "/v1/exec"), ("POST", "/v1/exec/stream")]
OPEN = ("/healthz", "/readyz")


def ask(nook, method, path, **headers):
    headers = {k.replace("_", "-"): v for k, v in headers.items()}
    body = {"json": {"command": "true"}} if method == "POST" else {}
    return nook.request(method, path, tcp=True, auth=False, headers=headers, **body)


@pytest.mark.parametrize(("method", "path"), ROUTES + [("GET", "/v1/nothing"), ("PUT", "/v1/exec")])
def test_every_route_but_health_needs_the_token(tcp_nook, method, path):
    wrong = [None, "", "Bearer", "Bearer ", "Bearer x", f"Bearer {tcp_nook.token}x",
             f"Bearer {tcp_nook.token[:-1]}", f"Basic {tcp_nook.token}", tcp_nook.token,
             f"Bearer {tcp_nook.token.swapcase()}"]
    for value in wrong:
        response = ask(tcp_nook, method, path, Authorization=value)
        if path in OPEN:
            assert response.status == 200
        else:
            assert (response.status, response.code) == (401, "unauthorized"), value
            assert response.header("WWW-Authenticate") == "Bearer"
    right = ask(tcp_nook, method, path, Authorization=f"Bearer {tcp_nook.token}")
    assert right.status == (404 if path == "/v1/nothing" else 405 if method == "PUT" else 200)


def test_the_token_is_judged_before_everything_else(tcp_nook):
    """A stranger learns neither which paths there are nor what they take."""
    answers = set()
    for method, path in (("GET", "/v1/exec"), ("GET", "/v1/nothing"), ("POST", "/v1/exec?x=1"),
                         ("OPTIONS", "/v1/exec"), ("GET", "/v1/capabilities?bad=%41")):
        response = ask(tcp_nook, method, path, Host="evil.example", Origin="http://evil.example")
        answers.add((response.status, response.body))
    assert len(answers) == 1 and answers.pop()[0] == 401


def test_two_authorization_headers_are_not_one(tcp_nook):
    with tcp_nook.connect(tcp=True, auth=False) as conn:
        conn.send(f"GET /v1/capabilities HTTP/1.1\r\nHost: {conn.host}\r\n"
                  f"Authorization: Bearer {tcp_nook.token}\r\n"
                  f"Authorization: Bearer {tcp_nook.token}\r\n\r\n")
        assert conn.read_response().status in (400, 401)


def test_the_unix_socket_needs_no_token_and_no_name(tcp_nook):
    response = tcp_nook.get("/v1/capabilities", tcp=False, headers={"Host": "anything.example"})
    assert response.status == 200


def test_a_refused_request_starts_nothing(tcp_nook):
    tcp_nook.post("/v1/exec", {"command": "touch started"}, tcp=True, auth=False)
    tcp_nook.post("/v1/exec", {"command": "touch started"}, tcp=True,
                  headers={"Host": "evil.example"})
    tcp_nook.post("/v1/exec", {"command": "touch started"}, headers={"Origin": "http://a.example"})
    assert tcp_nook.exec("ls")["stdout"] == ""


def test_hosts_are_addresses_localhost_or_configured(start_nook):
    nook = start_nook("--allow-host", "box.example", tcp=True)
    for host, status in (("127.0.0.1", 200), ("10.0.0.1:1", 200), ("[::1]:80", 200),
                         ("localhost", 200), ("LocalHost:99", 200), ("box.example", 200),
                         ("BOX.example:8099", 200), ("evil.example", 403),
                         ("box.example.evil.example", 403), ("localhost.evil.example", 403),
                         ("127.0.0.1.evil.example", 403)):
        for path in ("/healthz", "/v1/capabilities"):
            response = nook.get(path, tcp=True, headers={"Host": host})
            assert response.status == status, (host, path)
            assert status == 200 or response.code == "forbidden"


def test_the_host_of_an_absolute_target_is_the_one_that_counts(tcp_nook):
    response = tcp_nook.get("http://evil.example/healthz", tcp=True)
    assert (response.status, response.code) == (403, "forbidden")
    assert tcp_nook.get("http://localhost/healthz", tcp=True,
                        headers={"Host": "evil.example"}).status == 200


def test_no_origin_is_allowed_unless_it_was_configured(start_nook):
    plain = start_nook(tcp=True)
    for origin in ("http://127.0.0.1:8099", "http://localhost", "null", "https://app.example"):
        for tcp in (True, False):
            response = plain.get("/healthz", tcp=tcp, headers={"Origin": origin})
            assert (response.status, response.code) == (403, "forbidden")
            assert response.header("Access-Control-Allow-Origin") is None
    nook = start_nook("--allow-origin", "https://app.example", tcp=True)
    response = nook.get("/v1/capabilities", tcp=True, headers={"Origin": "https://app.example"})
    assert response.status == 200
    assert response.header("Access-Control-Allow-Origin") == "https://app.example"
    assert response.header("Vary") == "Origin"
    assert response.header("Access-Control-Allow-Credentials") is None
    for origin in ("https://app.example.evil.example", "http://app.example", "null"):
        response = nook.get("/healthz", tcp=True, headers={"Origin": origin})
        assert (response.status, response.code) == (403, "forbidden")


def test_a_preflight_of_an_allowed_origin_is_answered_without_a_token(start_nook):
    nook = start_nook("--allow-origin", "https://app.example", tcp=True)
    headers = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST",
               "Access-Control-Request-Headers": "authorization,content-type"}
    response = nook.request("OPTIONS", "/v1/exec", tcp=True, auth=False, headers=headers)
    assert (response.status, response.body) == (204, b"")
    assert response.header("Access-Control-Allow-Origin") == "https://app.example"
    assert "POST" in response.header("Access-Control-Allow-Methods")
    assert "authorization" in response.header("Access-Control-Allow-Headers").lower()
    headers["Origin"] = "https://evil.example"
    response = nook.request("OPTIONS", "/v1/exec", tcp=True, auth=False, headers=headers)
    assert response.status == 401
    response = nook.request("OPTIONS", "/v1/exec", tcp=True)
    assert (response.status, response.header("Allow")) == (405, "POST")


def test_an_event_stream_of_an_allowed_origin_has_cors_headers(start_nook):
    nook = start_nook("--allow-origin", "https://app.example", tcp=True)
    with nook.stream("POST", "/v1/exec/stream", tcp=True, json={"command": "true"},
                     headers={"Origin": "https://app.example"}) as stream:
        assert stream.status == 200
        assert stream.header("Access-Control-Allow-Origin") == "https://app.example"


IDENTITY, NAMESPACE, PRINCIPAL = "X-Runbox-Identity", "X-Runbox-Namespace", "X-Runbox-Principal"


def test_identities_are_judged_by_their_form_and_then_not_supported(nook):
    for headers, status, code in (
            ({IDENTITY: "token"}, 501, "not_supported"),
            ({NAMESPACE: "n", PRINCIPAL: "p"}, 501, "not_supported"),
            ({IDENTITY: "x" * 256}, 501, "not_supported"),
            ({NAMESPACE: "n"}, 400, "bad_identity"),
            ({PRINCIPAL: "p"}, 400, "bad_identity"),
            ({IDENTITY: "t", NAMESPACE: "n", PRINCIPAL: "p"}, 400, "bad_identity"),
            ({IDENTITY: "t", PRINCIPAL: "p"}, 400, "bad_identity"),
            ({IDENTITY: ""}, 400, "bad_identity"),
            ({IDENTITY: "a b"}, 400, "bad_identity"),
            ({IDENTITY: "\xe4"}, 400, "bad_identity"),
            ({IDENTITY: "x" * 257}, 400, "bad_identity"),
            ({NAMESPACE: "n", PRINCIPAL: ""}, 400, "bad_identity")):
        for target in ("/v1/exec", "/v1/exec/stream"):
            response = nook.post(target, {"command": "touch started"}, headers=headers)
            assert (response.status, response.code) == (status, code), headers
    with nook.connect() as conn:
        conn.send("POST /v1/exec HTTP/1.1\r\nHost: localhost\r\nX-Runbox-Identity: a\r\n"
                  "X-Runbox-Identity: a\r\nContent-Length: 18\r\n\r\n" + '{"command":"true"}')
        assert conn.read_response().code == "bad_identity"
    assert nook.exec("ls")["stdout"] == ""


def test_a_malformed_key_is_refused(nook):
    for key in ("k" * 129, "", "a b", "\xe4"):
        response = nook.post("/v1/exec", {"command": "true"}, headers={"Idempotency-Key": key})
        assert (response.status, response.code) == (400, "bad_request")


def test_the_token_is_nowhere_to_be_seen(tcp_nook):
    seen = tcp_nook.exec("env; cat /proc/$PPID/environ /proc/$PPID/cmdline 2>/dev/null; "
                         f"cat {tcp_nook.token_file} 2>/dev/null; true")
    tcp_nook.get("/v1/capabilities?token=" + tcp_nook.token, tcp=True)
    tcp_nook.get("/v1/nothing", tcp=True)
    tcp_nook.get("/v1/nothing", tcp=True, auth=False,
                 headers={"Authorization": "Bearer wrong-token-of-a-stranger"})
    if tcp_nook.user != 0:
        assert tcp_nook.token not in seen["stdout"] + seen["stderr"]
    assert tcp_nook.token not in tcp_nook.stderr()
    assert "wrong-token-of-a-stranger" not in tcp_nook.stderr()


def test_no_auth_opens_loopback_and_nothing_else(start_nook):
    nook = start_nook("--no-auth", tcp=True, token=False)
    assert nook.get("/v1/capabilities", tcp=True, auth=False).status == 200
    assert nook.get("/v1/capabilities", tcp=True, auth=False,
                    headers={"Host": "evil.example"}).status == 403
    status, text = refuse("--no-auth", "--socket", "none", "--listen", f"0.0.0.0:{free_port()}")
    assert status == 2 and len(text.strip().splitlines()) == 1


def test_a_token_in_the_variable_is_taken_and_wiped(start_nook):
    token = secrets.token_urlsafe(24)
    nook = start_nook(tcp=True, token=False, env={"NOOKD_TOKEN": token})
    response = nook.get("/v1/capabilities", tcp=True, auth=False,
                        headers={"Authorization": f"Bearer {token}"})
    assert response.status == 200
    assert token not in nook.exec("env")["stdout"]
    with open(f"/proc/{nook.pid}/environ", "rb") as environ:
        assert token.encode() not in environ.read()
