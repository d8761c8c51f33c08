"""The smaller snippets of the text on handoffs: one for each piece of the API, and of its data."""

import inspect
from typing import TypeVar

import pytest
from pydantic import BaseModel

from offbook.actors import ensure_strict_json_schema
from tests.actors.handoffs.snippets import LIBRARIES, handed_off, libraries, load, play, some_agents


@pytest.fixture
def provided(run, monkeypatch):
    """`provided(story)`: play it, with a provider."""
    return lambda story: play(story, run, monkeypatch)


# --- the API, piece by piece ---


@LIBRARIES
def test_simple(library, provided):
    async def story(provider):
        provider.wants("transfer_to_billing_agent")
        names = await load(library, "simple")
        assert names["result"].last_agent == "billing_agent"
        assert provider.offered == ["transfer_to_billing_agent", "transfer_to_support_agent"]
        (tool, _) = provider.asked[0]["tools"]
        assert (
            tool["function"]["description"]
            == "Handoff to the billing_agent agent to handle the request. 处理账单、付款和发票问题"
        )

    provided(story)


@libraries("context")
def test_typed_input(library, provided, capsys):
    async def story(provider):
        names = await load(library, "typed_input")
        provider.wants(
            (
                "transfer_to_billing_agent",
                {"reason": "paid twice", "priority": "high", "customer_id": None},
            )
        )
        result = await library.run(names["triage_agent"], "help")
        assert (result.last_agent, result.session_values) == (
            "billing_agent",
            {"transfer_reason": "paid twice", "priority": "high"},
        )
        assert capsys.readouterr().out == "切换原因: paid twice, 优先级: high\n"
        function = provider.asked[0]["tools"][0]["function"]
        assert (function["strict"], function["parameters"]["required"]) == (
            True,
            ["reason", "priority", "customer_id"],
        )
        assert function["description"].startswith("切换到账单部门")

    provided(story)


@libraries("context")
def test_cleanup_before_a_handoff(library, provided, capsys):
    async def story(provider):
        names = await load(library, "cleanup")
        values = {"credit_card": "4111", "user": "Ann"}
        result = await handed_off(
            library, names["handoff_with_cleanup"], provider, session_values=values
        )
        assert result.session_values == {"user": "Ann"}
        assert capsys.readouterr().out == "已清理敏感数据\n"

    provided(story)


@LIBRARIES
def test_naming(library, provided):
    async def story(provider):
        names = await load(library, "naming", **some_agents(library, "billing_agent"))
        assert names["custom_handoff"].tool_name == "escalate_to_billing"
        await handed_off(library, names["custom_handoff"], provider)
        assert (
            provider.asked[0]["tools"][0]["function"]["description"]
            == "将复杂的账单问题升级到专业团队"
        )

    provided(story)


@libraries("context")
def test_enabling(library, provided):
    class Quota:
        async def check(self, user):
            return {"Ann": 3}.get(user, 0)

    async def story(provider):
        names = await load(
            library,
            "enabling",
            quota_service=Quota(),
            **some_agents(library, "agent", "vip_agent", "expert_agent"),
        )
        await handed_off(
            library, names["vip_handoff"], provider, session_values={"user_type": "vip"}
        )
        await handed_off(
            library, names["quota_handoff"], provider, session_values={"user_id": "Ann"}
        )
        for name in ("disabled_handoff", "vip_handoff", "quota_handoff"):
            triage = library.Agent(name="triage", handoffs=[names[name]])
            assert (await library.run(triage, "help")).last_agent == "triage"
            assert "tools" not in provider.asked[-1]

    provided(story)


@libraries("mapping")
def test_filters(library, provided):
    async def story(provider):
        async def llm_summarize(items):
            return f"{len(items)} items"

        names = await load(
            library, "filters", llm_summarize=llm_summarize, **some_agents(library, "agent")
        )
        await handed_off(library, names["filtered_handoff"], provider)
        assert [role for role, _ in provider.given] == ["user", "assistant", "tool"]
        await handed_off(library, names["advanced_handoff"], provider)
        assert provider.given[0] == ("user", "历史摘要: 0 items")
        assert ("user", "help") not in provider.given
        for name in ("remove_tool_calls", "add_context_summary"):
            await handed_off(
                library, library.handoff(names["agent"], input_filter=names[name]), provider
            )
        assert provider.given[:2] == [
            ("user", "help"),
            ("user", "[系统] 以下是之前的对话摘要: ..."),
        ]

    provided(story)


@LIBRARIES
def test_layers(library, provided):
    async def story(provider):
        given = some_agents(
            library,
            "sales_agent",
            "support_agent",
            "billing_agent",
            "senior_support_agent",
            "engineering_agent",
        )
        names = await load(library, "layers", **given)
        provider.wants("transfer_to_support_agent")
        assert (await library.run(names["main_agent"], "help")).last_agent == "support_agent"
        provider.wants("transfer_to_engineering_agent")
        assert (await library.run(names["support_agent"], "help")).last_agent == "engineering_agent"
        provider.wants("transfer_to_main", "transfer_to_sales_agent")
        assert (await library.run(names["engineering_agent"], "help")).last_agent == "sales_agent"

    provided(story)


@pytest.mark.filterwarnings("ignore:The `dict` method is deprecated")
@libraries("context")
def test_state(library, provided):
    async def story(provider):
        names = await load(library, "state", **some_agents(library, "specialist_agent"))
        state = {
            "from_agent": "triage",
            "timestamp": "now",
            "issue_type": "bug",
            "severity": "critical",
        }
        result = await handed_off(library, names["specialist_handoff"], provider, state)
        assert result.session_values == {"handoff_history": [state], "priority": "urgent"}

    provided(story)


@LIBRARIES
def test_smart_filter(library, provided):
    async def story(provider):
        names = await load(library, "smart_filter", **some_agents(library, "agent"))
        await handed_off(library, names["optimized_handoff"], provider)

    provided(story)


# --- data ---


@LIBRARIES
def test_input_data(library, provided):
    async def story(provider):
        seen = []
        given = some_agents(library, "billing_agent")

        async def of_the_snippet(data):
            names = await load(library, "input_data", context=data.run_context)
            seen.append(names["data"])
            return names["data"].clone(pre_handoff_items=(), new_items=())

        await handed_off(
            library, library.handoff(given["billing_agent"], input_filter=of_the_snippet), provider
        )
        assert provider.given == [("user", "初始问题")]
        assert seen[0].run_context is not None

    provided(story)


@LIBRARIES
def test_cloning(library, provided):
    async def story(provider):
        async def of_the_snippet(data):
            names = await load(
                library,
                "cloning",
                data=data,
                summary_item={"role": "user", "content": "sum"},
                limited_items=(),
                new_context=data.run_context,
            )
            assert data.new_items
            assert names["filtered"].new_items == names["filtered"].pre_handoff_items == ()
            return names["filtered"]

        await handed_off(
            library,
            library.handoff(some_agents(library, "expert")["expert"], input_filter=of_the_snippet),
            provider,
        )
        assert provider.given == [("user", "help")]

    provided(story)


@LIBRARIES
def test_filters_may_be_def_or_async_def(library, provided):
    async def story(provider):
        names = await load(library, "filter_kinds")
        assert not inspect.iscoroutinefunction(names["sync_filter"])
        assert inspect.iscoroutinefunction(names["async_filter"])

    provided(story)


@libraries("context")
def test_callbacks(library, provided):
    class MyInput(BaseModel):
        text: str

    async def story(provider):
        done = []

        async def save_to_db(data):
            done.append(data)

        async def log_handoff(context):
            done.append("logged")

        await load(
            library,
            "callback_aliases",
            THandoffInput=TypeVar("THandoffInput"),
            Callable=__import__("collections.abc").abc.Callable,
        )
        names = await load(
            library, "callbacks", MyInput=MyInput, save_to_db=save_to_db, log_handoff=log_handoff
        )
        expert = some_agents(library, "expert")["expert"]
        for name, values in [
            ("sync_with_input", {"input_data": MyInput(text="x")}),
            ("async_with_input", {"saved": True}),
            ("sync_no_input", {"transferred": True}),
            ("async_no_input", {}),
        ]:
            kind = MyInput if "with_input" in name else None
            result = await handed_off(
                library,
                library.handoff(expert, on_handoff=names[name], input_type=kind),
                provider,
                {"text": "x"},
            )
            assert result.session_values == values
        assert done == [MyInput(text="x"), "logged"]

    provided(story)


@LIBRARIES
def test_type_parameters(library, provided):
    async def story(provider):
        from typing import TypedDict

        names = await load(library, "type_parameters", TypedDict=TypedDict)
        special = names["SpecialAgent"](name="special")
        await handed_off(library, library.handoff(special), provider)
        assert isinstance(special.clone(name="other"), names["SpecialAgent"])

    provided(story)


@LIBRARIES
def test_inferred_input(library, provided):
    async def story(provider):
        names = await load(library, "inferred_input", **some_agents(library, "billing_agent"))
        await handed_off(
            library, names["billing_handoff"], provider, {"issue_type": "bill", "account_id": "7"}
        )

    provided(story)


@LIBRARIES
def test_schemas(library, provided):
    async def story(provider):
        names = await load(library, "json_schema")
        strict = await load(
            library,
            "strict_schema",
            schema=names["schema"],
            ensure_strict_json_schema=ensure_strict_json_schema,
        )
        assert strict["input_json_schema"]["additionalProperties"] is False
        assert strict["input_json_schema"]["required"] == ["reason", "priority"]
        made = library.handoff(
            some_agents(library, "expert")["expert"],
            on_handoff=lambda context, value: None,
            input_type=names["TransferData"],
        )
        assert made.input_json_schema["properties"]["priority"]["enum"] == ["high", "medium", "low"]
        await handed_off(library, made, provider, {"reason": "x", "priority": "low"})

    provided(story)
