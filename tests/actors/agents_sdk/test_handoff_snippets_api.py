"""The smaller snippets of the text on handoffs: one for each piece of the API, and of its data."""

import inspect
from typing import TypeVar

import pytest
from pydantic import BaseModel

from tests.actors.agents_sdk.handoff_snippets import agents, handed_over, load, play
from understudy.actors import agents_sdk as sdk
from understudy.actors import ensure_strict_json_schema
from understudy.runtime import ScriptedModel


@pytest.fixture
def provided(run, monkeypatch):
    """`provided(story)`: play it, with a provider."""
    return lambda story: play(story, run, monkeypatch)


# --- the API, piece by piece ---


def test_simple(provided):
    async def story(provider):
        provider.wants("transfer_to_billing_agent")
        names = await load("simple")
        assert names["result"].last_agent.name == "billing_agent"
        assert provider.offered == ["transfer_to_billing_agent", "transfer_to_support_agent"]
        (tool, _) = provider.asked[0]["tools"]
        assert tool["function"]["description"] == "Handoff to the billing_agent agent to handle the request. 处理账单、付款和发票问题"
        assert provider.asked[0]["model"] == "gpt-5.6-luna", "a key is enough"

    provided(story)


def test_typed_input(provided, capsys):
    async def story(provider):
        names = await load("typed_input")
        provider.wants(("transfer_to_billing_agent", {"reason": "paid twice", "priority": "high", "customer_id": None}))
        result = await sdk.Runner.run(names["triage_agent"], "help")
        assert (result.last_agent.name, result.session_values) == ("billing_agent", {"transfer_reason": "paid twice", "priority": "high"})
        assert capsys.readouterr().out == "切换原因: paid twice, 优先级: high\n"
        function = provider.asked[0]["tools"][0]["function"]
        assert (function["strict"], function["parameters"]["required"]) == (True, ["reason", "priority", "customer_id"])
        assert function["description"].startswith("切换到账单部门")

    provided(story)


def test_cleanup_before_a_handoff(provided, capsys):
    async def story(provider):
        names = await load("cleanup")
        values = {"credit_card": "4111", "user": "Ann"}
        result = await handed_over(names["handoff_with_cleanup"], provider, session_values=values)
        assert result.session_values == {"user": "Ann"}
        assert capsys.readouterr().out == "已清理敏感数据\n"

    provided(story)


def test_naming(provided):
    async def story(provider):
        names = await load("naming", **agents("billing_agent"))
        assert names["custom_handoff"].tool_name == "escalate_to_billing"
        await handed_over(names["custom_handoff"], provider)
        assert provider.asked[0]["tools"][0]["function"]["description"] == "将复杂的账单问题升级到专业团队"

    provided(story)


def test_enabling(provided):
    class Quota:
        async def check(self, user):
            return {"Ann": 3}.get(user, 0)

    async def story(provider):
        names = await load("enabling", quota_service=Quota(), **agents("agent", "vip_agent", "expert_agent"))
        await handed_over(names["vip_handoff"], provider, session_values={"user_type": "vip"})
        await handed_over(names["quota_handoff"], provider, session_values={"user_id": "Ann"})
        for name in ("disabled_handoff", "vip_handoff", "quota_handoff"):
            triage = sdk.Agent(name="triage", handoffs=[names[name]])
            assert (await sdk.Runner.run(triage, "help")).last_agent.name == "triage"
            assert "tools" not in provider.asked[-1]

    provided(story)


def test_filters(provided):
    async def story(provider):
        async def llm_summarize(items):
            return f"{len(items)} items"

        names = await load("filters", llm_summarize=llm_summarize, **agents("agent"))
        await handed_over(names["filtered_handoff"], provider)
        assert [role for role, _ in provider.given] == ["user", "assistant", "tool"]
        await handed_over(names["advanced_handoff"], provider)
        assert provider.given[0] == ("user", "历史摘要: 0 items")
        assert ("user", "help") not in provider.given
        for name in ("remove_tool_calls", "add_context_summary"):
            await handed_over(sdk.handoff(names["agent"], input_filter=names[name]), provider)
        assert provider.given[:2] == [("user", "help"), ("user", "[系统] 以下是之前的对话摘要: ...")]

    provided(story)


def test_layers(provided):
    async def story(provider):
        given = agents("sales_agent", "support_agent", "billing_agent", "senior_support_agent", "engineering_agent")
        names = await load("layers", **given)
        provider.wants("transfer_to_support_agent")
        assert (await sdk.Runner.run(names["main_agent"], "help")).last_agent.name == "support_agent"
        provider.wants("transfer_to_engineering_agent")
        assert (await sdk.Runner.run(names["support_agent"], "help")).last_agent.name == "engineering_agent"
        provider.wants("transfer_to_main", "transfer_to_sales_agent")
        assert (await sdk.Runner.run(names["engineering_agent"], "help")).last_agent.name == "sales_agent"

    provided(story)


@pytest.mark.filterwarnings("ignore:The `dict` method is deprecated")
def test_state(provided):
    async def story(provider):
        names = await load("state", **agents("specialist_agent"))
        state = {"from_agent": "triage", "timestamp": "now", "issue_type": "bug", "severity": "critical"}
        result = await handed_over(names["specialist_handoff"], provider, state)
        assert result.session_values == {"handoff_history": [state], "priority": "urgent"}

    provided(story)


def test_smart_filter(provided):
    async def story(provider):
        names = await load("smart_filter", **agents("agent"))
        await handed_over(names["optimized_handoff"], provider)

    provided(story)


# --- data ---


def test_input_data(provided):
    async def story(provider):
        seen = []
        given = agents("billing_agent")

        async def of_the_snippet(data):
            names = await load("input_data", context=data.run_context)
            seen.append(names["data"])
            return names["data"].clone(pre_handoff_items=(), new_items=())

        await handed_over(sdk.handoff(given["billing_agent"], input_filter=of_the_snippet), provider)
        assert provider.given == [("user", "初始问题")]
        assert seen[0].run_context is not None

    provided(story)


def test_cloning(provided):
    async def story(provider):
        async def of_the_snippet(data):
            names = await load("cloning", data=data, summary_item={"role": "user", "content": "sum"}, limited_items=(), new_context=data.run_context)
            assert data.new_items
            assert names["filtered"].new_items == names["filtered"].pre_handoff_items == ()
            return names["filtered"]

        await handed_over(sdk.handoff(agents("expert")["expert"], input_filter=of_the_snippet), provider)
        assert provider.given == [("user", "help")]

    provided(story)


def test_filters_may_be_def_or_async_def(provided):
    async def story(provider):
        names = await load("filter_kinds")
        assert not inspect.iscoroutinefunction(names["sync_filter"])
        assert inspect.iscoroutinefunction(names["async_filter"])

    provided(story)


def test_callbacks(provided):
    class MyInput(BaseModel):
        text: str

    async def story(provider):
        done = []

        async def save_to_db(data):
            done.append(data)

        async def log_handoff(context):
            done.append("logged")

        await load("callback_aliases", THandoffInput=TypeVar("THandoffInput"), Callable=__import__("collections.abc").abc.Callable)
        names = await load("callbacks", MyInput=MyInput, save_to_db=save_to_db, log_handoff=log_handoff)
        expert = agents("expert")["expert"]
        for name, values in [
            ("sync_with_input", {"input_data": MyInput(text="x")}),
            ("async_with_input", {"saved": True}),
            ("sync_no_input", {"transferred": True}),
            ("async_no_input", {}),
        ]:
            kind = MyInput if "with_input" in name else None
            result = await handed_over(sdk.handoff(expert, on_handoff=names[name], input_type=kind), provider, {"text": "x"})
            assert result.session_values == values
        assert done == [MyInput(text="x"), "logged"]

    provided(story)


def test_type_parameters(provided):
    async def story(provider):
        from typing import TypedDict

        names = await load("type_parameters", TypedDict=TypedDict)
        special = names["SpecialAgent"](name="special")
        await handed_over(sdk.handoff(special), provider)
        assert isinstance(special.clone(name="other"), names["SpecialAgent"])

    provided(story)


def test_inferred_input(provided):
    async def story(provider):
        names = await load("inferred_input", **agents("billing_agent"))
        await handed_over(names["billing_handoff"], provider, {"issue_type": "bill", "account_id": "7"})

    provided(story)


def test_schemas(provided):
    async def story(provider):
        names = await load("json_schema")
        strict = await load("strict_schema", schema=names["schema"], ensure_strict_json_schema=ensure_strict_json_schema)
        assert strict["input_json_schema"]["additionalProperties"] is False
        assert strict["input_json_schema"]["required"] == ["reason", "priority"]
        made = sdk.handoff(agents("expert")["expert"], on_handoff=lambda context, value: None, input_type=names["TransferData"])
        assert made.input_json_schema["properties"]["priority"]["enum"] == ["high", "medium", "low"]
        await handed_over(made, provider, {"reason": "x", "priority": "low"})

    provided(story)


def test_the_names_of_callbacks_and_of_the_question_whether_a_handoff_is_enabled_are_there(run):
    def note(context: sdk.RunContextWrapper, value: int) -> None:
        """As the type of callbacks says."""

    with_input: sdk.OnHandoffWithInput[int] = note
    without: sdk.OnHandoffWithoutInput = print
    agent = sdk.Agent("B", model=ScriptedModel([]))
    assert sdk.handoff(agent, on_handoff=with_input, input_type=int).agent is agent
    assert isinstance(sdk.THandoffInput, TypeVar)
    assert without is print
    assert run(sdk.handoff(agent, is_enabled=lambda context, agent: False).is_enabled_for_context(None, agent)) is False
