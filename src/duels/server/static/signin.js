/** Sign in with the token of the link `/signin#TOKEN`; what follows the # is never sent by itself, nor kept. */

function signIn() {
  const token = location.hash.slice(1);
  if (!token) return;
  history.replaceState(null, "", location.pathname);
  document.getElementById("token").value = token;
  document.getElementById("signin").submit();
}

addEventListener("hashchange", signIn);
signIn();
